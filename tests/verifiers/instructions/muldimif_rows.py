"""Rows for MulDimIF: a constraint's id and text, an answer, and whether it keeps the constraint."""

from __future__ import annotations

TABLE = "| Name | Year |\n|---|---|\n| Ada | 1815 |\n| Alan | 1912 |"
PAGE = "# Ships\n\nThey float.\n\n## Sails\n\nWind moves them.\n\n## Steam\n\nFire moves them."
SIMPLE = "我们将这个问题说清楚，请让他们来这里学习。"
TRADITIONAL = "我們將這個問題說清楚，請讓他們來這裡學習。"
NESTED = '```json\n{"a": {"b": 1}, "c": [{"d": 2}]}\n```'

WORDS = "muldimif:length:words"
SENTENCES = "muldimif:length:sentences"
PARAGRAPHS = "muldimif:length:paragraphs"
KEYWORDS = "muldimif:content:keywords"
PUNCTUATION = "muldimif:content:punctuation"
IDENTIFIERS = "muldimif:content:identifiers"
ENGLISH = "muldimif:language:english"
CHINESE = "muldimif:language:chinese"
TABLES = "muldimif:format:table"
MARKDOWN = "muldimif:format:markdown"
JSON = "muldimif:format:json"
XML = "muldimif:format:xml"

ROWS = [
    # words
    (WORDS, "At most 3 words", "one two three", True),
    (WORDS, "At most 3 words", "one two three four", False),
    (WORDS, "The answer must contain at least three words", "one two", False),
    (WORDS, "The answer must contain at least three words", "state-of-the-art isn't 3.14", True),
    (WORDS, "The response must be between 3 and 5 words", "one two", False),
    (WORDS, "The response must be between 3 to 5 words", "one two three four five", True),
    (WORDS, "Range: 3-5 words", "one two three four five six", False),
    (WORDS, "fewer than 3 words", "one two three", False),
    (WORDS, "more than 3 words", "one two three four", True),
    (WORDS, "exactly four words", "one two three four", True),
    (WORDS, "must be at least 2 words but not exceed 3 words", "a b c d", False),
    (WORDS, "must be at least 2 words but not exceed 3 words", "a b c", True),
    (WORDS, "the total word count does not exceed 3 words", "a b c d", False),
    (WORDS, "3 words or fewer", "a b c d", False),
    (WORDS, "The essay must be at least 1,000 words", "word " * 999, False),
    (WORDS, "The essay must be at least one thousand words", "word " * 1000, True),
    (WORDS, "at most 4 words", "我们学习吧", False),
    (WORDS, "Each cell in the table must contain at most 1 word", TABLE, True),
    (WORDS, "Each cell in the table must contain at most 1 word", TABLE.replace("Ada", "Ada L."), False),
    (WORDS, "Each cell in the table must contain at most 1 word", "no table", False),
    (WORDS, "Each item in the list is described in no more than 2 words", "- red fox\n- owl\n", True),
    (WORDS, "Each item in the list is described in no more than 2 words", "- red fox\n  runs\n- owl", False),
    # sentences
    (SENTENCES, "At least: 2 sentences", "One. Two. Three.", True),
    (SENTENCES, "At least 2 sentences", "Dr. Smith paid 3.50 dollars.", False),
    (SENTENCES, "The answer must be a single sentence", "Only this.", True),
    (SENTENCES, "The answer must be a single sentence", "Only this. And that.", False),
    (SENTENCES, "limited to 2 sentences", "# A heading\n\nOne. Two.", True),
    (SENTENCES, "limited to 2 sentences", "One. Two. Three!", False),
    (SENTENCES, "consist of 1 to 2 sentences", "", False),
    (SENTENCES, "Each section must contain at least one sentence", PAGE, True),
    (SENTENCES, "Each section must contain at least two sentences", PAGE, False),
    (
        SENTENCES,
        "must be between 1 and 3 words and contain at least 1 sentence",
        "One two three four.",
        False,
    ),
    # paragraphs
    (PARAGRAPHS, "at least two paragraphs", "One.\n\nTwo.", True),
    (PARAGRAPHS, "at least two paragraphs", "One.\nTwo.", False),
    (PARAGRAPHS, "at least two paragraphs", "# Title\n\nOne.\n\n---\n", False),
    (PARAGRAPHS, "The response must be a single paragraph", "One.\n\nTwo.", False),
    (PARAGRAPHS, "The response must be a single paragraph", "# Title\n\nOne.\n", True),
    (PARAGRAPHS, "organized into a range of 2 to 3 paragraphs", "A.\r\n\r\nB.\r\n\r\nC.", True),
    # keywords
    (KEYWORDS, "Must include the keyword 'cat'", "The Cat sat.", True),
    (KEYWORDS, "Must include the keyword 'cat'", "Concatenate", False),
    (KEYWORDS, "Must include the keywords 'red fox', 'owl', and 'bee'", "red\nfox, owl, bee", True),
    (KEYWORDS, "Must include the keywords 'red fox', 'owl', and 'bee'", "red fox, owl", False),
    (KEYWORDS, "the keyword 'Kellogg's' must be included", "We eat Kellogg’s.", True),
    (KEYWORDS, "must include the keyword 'innovation.'", "Innovation matters", True),
    (KEYWORDS, "The answer must include the keyword 'tea' at least twice", "tea and cake", False),
    (KEYWORDS, "The answer must include the keyword 'tea' at least twice", "tea, **tea**", True),
    (KEYWORDS, "The keyword 'tea' must appear exactly 2 times", "tea tea tea", False),
    (KEYWORDS, "includes the keyword 'tea' and avoids the keyword 'milk'", "tea with milk", False),
    (KEYWORDS, "includes the keyword 'tea' and avoids the keyword 'milk'", "tea with milkweed", True),
    (KEYWORDS, "Must include the keyword 'tea' in each sentence", "Tea is hot. I like tea.", True),
    (KEYWORDS, "Must include the keyword 'tea' in each sentence", "Tea is hot. I like it.", False),
    (KEYWORDS, "The table must include the keyword 'Ada'", f"Ada\n\n{TABLE.replace('Ada', 'Bob')}", False),
    (KEYWORDS, "must include the keyword 'forbidden ('", "forbidden (", True),
    (KEYWORDS, "該句必須包含關鍵詞「代表」", "他是代表。", True),
    (KEYWORDS, "The list must include the game 'Go' and end with a period", "Go", False),
    # punctuation
    (PUNCTUATION, "The answer must end with a period", "Yes.", True),
    (PUNCTUATION, "The answer must end with a period", "Yes", False),
    (PUNCTUATION, "The answer must end with a period", "Yes...", False),
    (PUNCTUATION, "The answer must end with a period", 'He said "**yes.**"\n', True),
    (PUNCTUATION, "Ending punctuation must be a question mark", "真的吗？", True),
    (PUNCTUATION, "Each sentence must end with a period", "One. Two!", False),
    (PUNCTUATION, "Each sentence must end with a period", "# Title\n\nOne. Two.", True),
    (PUNCTUATION, "ensure that each sentence ends with a period or a question mark", "One. Two?", True),
    (PUNCTUATION, "Each paragraph must end with a period", "One.\n\nTwo", False),
    (PUNCTUATION, "Each section must end with a period", PAGE, True),
    (PUNCTUATION, "The essay should avoid using exclamation marks", "Stop!", False),
    (PUNCTUATION, "The essay should avoid using exclamation marks", "", True),
    (PUNCTUATION, "conclude with an exclamation mark", " ", False),
    # identifiers
    (IDENTIFIERS, "The answer must start with the identifier 'List:'", "**List:** a", True),
    (IDENTIFIERS, "The answer must start with the identifier 'List:'", "A list:", False),
    (IDENTIFIERS, "No bullet points", "- a", False),
    (IDENTIFIERS, "No bullet points", "a - b, *c*", True),
    (IDENTIFIERS, "The answer must be in full sentences", "I am. You are!", True),
    (IDENTIFIERS, "The answer must be in full sentences", "I am\n- you", False),
    # English
    (ENGLISH, "The answer must use capitalized letters for each word", "The Big-name 3rd Man", True),
    (ENGLISH, "The answer must use capitalized letters for each word", "The Big man", False),
    (ENGLISH, "The answer must use capitalized letters for each word", "SEE https://a.org/b", True),
    (ENGLISH, "The answer must use capitalized letters for each word", "12345", False),
    (ENGLISH, "each word in the headings is capitalized", "# Big Day\n\nsmall words", True),
    (ENGLISH, "each word in the headings is capitalized", "# Big day\n\nSmall Words", False),
    (ENGLISH, "The answer must be in all uppercase letters", "GREAT NEWS, 2024!", True),
    (ENGLISH, "The answer must be in all uppercase letters", "GREAT NEWs", False),
    (ENGLISH, "The answer must be written entirely in lowercase letters", "all small", True),
    (ENGLISH, "The answer must be written entirely in lowercase letters", "I am", False),
    (ENGLISH, "in English, with each word capitalized", "The King Of The Hill Is Not Here", True),
    (ENGLISH, "in English, with each word capitalized", "Le Roi Est Dans La Maison Des Fous", False),
    # Chinese
    (CHINESE, "The answer must be in Simplified Chinese", SIMPLE, True),
    (CHINESE, "The answer must be in Simplified Chinese", TRADITIONAL, False),
    (CHINESE, "Must use Traditional Chinese characters", TRADITIONAL, True),
    (CHINESE, "Must use Traditional Chinese characters", SIMPLE, False),
    (CHINESE, "必须将文本翻译为简体中文", "This is English.", False),
    (CHINESE, "必须将文本翻译为简体中文", f"{SIMPLE} Python", True),
    (CHINESE, "The answer must be in Simplified Chinese", "これは日本語の文です。", False),
    # tables
    (TABLES, "The answer must include a table with no more than 2 rows", TABLE, True),
    (TABLES, "The answer must include a table with no more than 1 row", TABLE, False),
    (TABLES, "The answer must include a table with no more than 2 rows", "no table | here", False),
    (TABLES, "If a table is used, it must not exceed 2 rows", "no table", True),
    (TABLES, "Any table included must not exceed one row", TABLE, False),
    (
        TABLES,
        "The answer must be in a table with a maximum of 2 rows, including the header row",
        TABLE,
        False,
    ),
    (TABLES, "The table must have no more than 2 rows and 1 column", TABLE, False),
    (TABLES, "The table must have exactly 2 columns: 'Name' and 'Year'", TABLE, True),
    (TABLES, "The table must have exactly 2 columns: Name and Country", TABLE, False),
    (TABLES, "Include a table with a column limit of two", TABLE, True),
    (TABLES, "Include a table with a row limit of 5", f"```\n{TABLE}\n```", False),
    (TABLES, "Include a table with a row limit of 5", f"```markdown\n{TABLE}\n```", True),
    (TABLES, "The list should not exceed 2 entries", "1. a\n2. b\n   - c\n3. d", False),
    (TABLES, "The list should not exceed 2 entries", "1. a\n2. b\n   - c", True),
    # Markdown
    (MARKDOWN, "The answer must include a level 2 heading", PAGE, True),
    (MARKDOWN, "The answer must include a level 3 heading", PAGE, False),
    (MARKDOWN, "The answer must include a level 1 heading", "#hashtag", False),
    (MARKDOWN, "The answer must include a level 1 heading", "```\n# comment\n```", False),
    (MARKDOWN, "The answer must include a level 1 heading", "Title\n=====\n\ntext", True),
    (MARKDOWN, "must include a level 2 heading titled 'Sails'", PAGE, True),
    (MARKDOWN, "must include a level 1 heading titled 'Sails'", PAGE, False),
    (MARKDOWN, "must begin with a level 1 heading in Markdown format", PAGE, True),
    (MARKDOWN, "must begin with a level 2 heading in Markdown format", PAGE, False),
    (MARKDOWN, "at least two heading levels, such as '## Overview' and '### Details'", PAGE, True),
    (MARKDOWN, "The report must use exactly three heading levels: H1, H2, and H3", PAGE, False),
    (MARKDOWN, "Use heading levels 1 and 2 to organize the answer", PAGE, True),
    (MARKDOWN, "'##' for main sections and '###' for subsections as headings", PAGE, False),
    (MARKDOWN, "must include at least two level 2 headings", PAGE, True),
    (MARKDOWN, "headings should be at level 2", PAGE, False),
    (MARKDOWN, "Any headings used in the answer must not exceed level 2", PAGE, True),
    (MARKDOWN, "Use heading levels to create sections, specifically 'Sails' and 'Oars'", PAGE, False),
    (MARKDOWN, "with 'Ships' as a level 1 heading and 'Steam' as a level 2 heading", PAGE, True),
    (MARKDOWN, "Use block quotes to highlight key points", "> Wind", True),
    (MARKDOWN, "Use block quotes to highlight key points", "a > b", False),
    (MARKDOWN, "must use capitalized letters for each word and include a level 1 heading", "# big", False),
    # JSON
    (JSON, "The answer must include a JSON object with at least two levels of nesting", NESTED, True),
    (JSON, "Object nesting levels must not exceed 1", NESTED, False),
    (JSON, "a JSON object with exactly two levels of nesting", '{"a": {"b": {"c": 1}}}', False),
    (JSON, "Object nesting levels must not exceed 3", "no JSON", False),
    (JSON, "Object nesting levels must not exceed 3", "[1, 2]", False),
    (JSON, "Object nesting levels must not exceed 3", '{"a": NaN}', False),
    (JSON, "a JSON object with a nesting level of 2", f"Here: {NESTED[8:-4]} Done.", True),
    # XML
    (XML, "Each XML element must have no more than 1 attribute", '<a x="1"><b/></a>', True),
    (XML, "Each XML element must have no more than 1 attribute", "<a x=\"1\" y='2'/>", False),
    (XML, "Each XML element must have no more than 1 attribute", "no XML", True),
    (XML, "Must describe the XML data structure with at least 3 attributes", '<a x="1" y="2"/>', False),
    (XML, "Must describe the XML data structure with at least 2 attributes", '<a x="1" y="2"/>', True),
    (XML, "Must describe the XML data structure with at least 2 attributes", "a x=1 y=2", False),
]

# What nobody can read as a rule: the id, the text, a piece of the reason.
UNREAD = [
    (WORDS, "the response should be concise, resembling a short blurb", "nothing in it can be checked"),
    (WORDS, "Each definition must be at most 30 words", "what 'each definition"),
    (WORDS, "The response should be about 50 words", "'50'"),
    (WORDS, "At most 5 words per slide", "what 'per slide'"),
    (WORDS, "The caption must be at most 5 words", "what 'caption'"),
    (WORDS, "The diagram must have at most 10 labeled components", "'10'"),
    (WORDS, "at least 5 characters", "'5'"),
    (WORDS, "at most 5 words and exactly 3 hashtags", "'3'"),
    (WORDS, "The answer must end with a period", "it says nothing about words"),
    (WORDS, "at most 5 words, unless the topic is hard", "'unless'"),
    (WORDS, "at least 5 words, no jargon", "'no'"),
    (SENTENCES, "Each explanation must be a single sentence", "what 'each explanation"),
    (KEYWORDS, "The script must include the names of key players", "nothing in it can be checked"),
    (KEYWORDS, "The name must include a word such as 'Leaf' or 'River'", "'word'"),
    (KEYWORDS, "The table must include the keyword 'Tale' in the 'Game Name' column", "'Game Name'"),
    (KEYWORDS, "avoids the mention of illegal content", "'avoids'"),
    (PUNCTUATION, "Each question must end with a question mark", "what 'each question"),
    (ENGLISH, "The text must be in capitalized form", "'capitalized'"),
    (
        ENGLISH,
        "Use capitalized letters for each word in the name of the player",
        "what 'the name of the player'",
    ),
    (TABLES, "The PowerPoint must not exceed 5 columns per slide", "'5'"),
    (TABLES, "The table must have exactly 3 columns: 'a' and 'b'", "it names 2 columns"),
    (MARKDOWN, "Use a level 2 heading for each term", "'each'"),
    (MARKDOWN, "must include at least two heading levels if using Markdown", "'if'"),
    (XML, "Number of attributes must be exactly 5", "'5'"),
    (WORDS, "at most 5 words " * 100, "more than 1000 characters"),
]
