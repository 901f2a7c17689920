"""The embedded tools: those of training by domain, and new ones that training never sees."""

from __future__ import annotations

from tasks.data.toolcall import words
from tasks.data.toolcall.model import Tool, choice, decimal, flag, several, text, whole

_START, _GOAL, _CITY = (text(name, words.CITIES) for name in ("start", "goal", "city"))
_ON_DAY = text("day", words.DAYS, "on {}", "for {}")
_AT_HOUR = whole("hour", 1, 23, "at {} o'clock", "at hour {}")

TRAINING: dict[str, tuple[Tool, ...]] = {
    "weather": (
        Tool(
            "get_weather",
            (
                _CITY,
                whole("days", 2, 14, "for the next {} days", "for {} days", "over {} days", default=3),
                choice("unit", "celsius kelvin", "in {}", "in degrees {}", default="celsius"),
            ),
            (
                "what is the weather |in {city}",
                "show the weather |for {city}",
                "how will the weather be |in {city}",
                "get the forecast |for {city}",
            ),
        ),
        Tool(
            "air_quality",
            (_CITY,),
            ("how clean is the air |in {city}", "check the air |in {city}", "show the air |of {city}"),
        ),
        Tool(
            "sun_time",
            (choice("event", "rise set"), _CITY),
            ("when does the sun |{event} in {city}", "find out when the sun will |{event} in {city}"),
        ),
    ),
    "travel": (
        Tool(
            "book_flight",
            (_START, _GOAL, whole("seats", 2, 9, "with {} seats", "for {} seats", default=1)),
            (
                "book a flight |from {start} to {goal}",
                "reserve a flight |to {goal} from {start}",
                "i want to fly |from {start} to {goal}",
                "get me a plane |from {start} to {goal}",
            ),
        ),
        Tool(
            "book_hotel",
            (
                _CITY,
                whole("nights", 1, 20),
                whole("stars", 1, 5, "with {} stars", "of {} stars", default=3),
            ),
            (
                "book a hotel |in {city} for {nights} nights",
                "find a hotel |for {nights} nights in {city}",
                "i need a bed |in {city} for {nights} nights",
            ),
        ),
        Tool(
            "rent_car",
            (
                _CITY,
                whole("days", 1, 20),
                choice("size", "small medium large", "of {} size", "that is {}", default="medium"),
            ),
            (
                "rent a car |in {city} for {days} days",
                "hire a car |for {days} days in {city}",
                "i need a car |in {city} for {days} days",
            ),
        ),
        Tool(
            "find_train",
            (_START, _GOAL, _ON_DAY),
            (
                "find a train |from {start} to {goal}",
                "which trains go |from {start} to {goal}",
                "look for a train |to {goal} from {start}",
            ),
        ),
        Tool(
            "find_route",
            (_START, _GOAL, choice("by", "car bike foot", "by {}", "going by {}", default="car")),
            (
                "find the way |from {start} to {goal}",
                "how do i get |from {start} to {goal}",
                "show the route |to {goal} from {start}",
            ),
        ),
    ),
    "food": (
        Tool(
            "order_pizza",
            (choice("size", "small medium large"), several("toppings", words.TOPPINGS)),
            (
                "order |a {size} pizza with {toppings}",
                "i would like |a {size} pizza with {toppings}",
                "get me |a pizza with {toppings} in {size}",
            ),
        ),
        Tool(
            "book_table",
            (text("place", words.PLACES), whole("guests", 2, 12), _AT_HOUR),
            (
                "book a table |at {place} for {guests} guests",
                "reserve a table |for {guests} at {place}",
                "get a table |for {guests} people at {place}",
            ),
        ),
        Tool(
            "find_recipe",
            (
                text("dish", words.DISHES),
                whole("minutes", 5, 90, "in {} minutes", "ready in {} minutes", step=5, default=30),
                flag("vegan", "that is vegan", "in a vegan way"),
            ),
            ("find a recipe |for {dish}", "how do i cook |{dish}", "how can i make |{dish}"),
        ),
        Tool(
            "count_calories",
            (text("food", words.FOODS), whole("grams", 10, 500, step=10)),
            (
                "how many calories are |in {grams} grams of {food}",
                "count the calories |of {grams} grams of {food}",
                "how much energy is |in {grams} grams of {food}",
            ),
        ),
    ),
    "music": (
        Tool(
            "play_song",
            (
                text("title", words.TITLES),
                whole("volume", 5, 95, "at volume {}", "with volume {}", step=5, default=50),
            ),
            ("play |{title}", "play the song |{title}", "i want to hear |{title}", "start the song |{title}"),
        ),
        Tool(
            "make_playlist",
            (text("genre", words.GENRES), whole("songs", 5, 60, "with {} songs", "of {} songs", default=20)),
            (
                "make a playlist |of {genre} music",
                "create |a {genre} playlist",
                "i want a list |of {genre} songs",
            ),
        ),
        Tool(
            "find_concert",
            (_CITY, text("genre", words.GENRES, "with {} music", "of {} music")),
            ("find a concert |in {city}", "which concerts are |in {city}", "look for a concert |in {city}"),
        ),
        Tool(
            "tune_radio",
            (decimal("station", 87, 108),),
            ("tune the radio |to {station}", "switch the radio |to {station}", "play the station |{station}"),
        ),
    ),
    "home": (
        Tool(
            "set_light",
            (
                text("room", words.ROOMS),
                whole("level", 5, 100, step=5),
                text("color", words.COLORS, "in {}", "with {} color"),
            ),
            (
                "set the light |in the {room} to {level}",
                "dim the light |in the {room} to {level} percent",
                "turn the lamp |in the {room} to {level} percent",
            ),
        ),
        Tool(
            "set_heat",
            (text("room", words.ROOMS), decimal("degrees", 15, 26)),
            (
                "heat |the {room} to {degrees} degrees",
                "set the heat |in the {room} to {degrees} degrees",
                "make |the {room} {degrees} degrees warm",
            ),
        ),
        Tool(
            "lock_door",
            (
                text("door", "front back garage cellar balcony garden"),
                whole("minutes", 5, 95, "for {} minutes", step=5),
            ),
            ("lock |the {door} door", "close |the {door} door", "let nobody open |the {door} door"),
        ),
        Tool(
            "clean_room",
            (
                text("room", words.ROOMS),
                flag("quiet", "in quiet mode", "in a quiet way"),
                whole("times", 2, 5, "{} times", default=1),
            ),
            ("clean |the {room}", "vacuum |the {room}", "let the robot clean |the {room}"),
        ),
    ),
    "time": (
        Tool(
            "set_alarm",
            (whole("hour", 1, 23), _ON_DAY),
            (
                "set an alarm |at {hour} o'clock",
                "wake me up |at {hour} o'clock",
                "set the alarm clock |to {hour}",
            ),
        ),
        Tool(
            "set_timer",
            (whole("minutes", 1, 90), text("label", words.DISHES, "called {}", "named {}")),
            (
                "set a timer |for {minutes} minutes",
                "start a timer |of {minutes} minutes",
                "tell me when |{minutes} minutes are over",
            ),
        ),
        Tool(
            "add_event",
            (text("event", words.EVENTS), text("day", words.DAYS), _AT_HOUR),
            (
                "add |{event} on {day} to my calendar",
                "plan |{event} on {day}",
                "schedule |{event} for {day}",
            ),
        ),
        Tool(
            "city_time",
            (_CITY,),
            ("what time is it |in {city}", "tell me the time |in {city}", "how late is it |in {city}"),
        ),
    ),
    "money": (
        Tool(
            "convert_money",
            (
                decimal("amount", 1, 99),
                text("source", words.CURRENCIES),
                text("target", words.CURRENCIES),
            ),
            (
                "convert |{amount} {source} to {target}",
                "how much is |{amount} {source} in {target}",
                "change |{amount} {source} into {target}",
            ),
        ),
        Tool(
            "send_money",
            (
                text("person", words.PEOPLE),
                whole("amount", 5, 300, step=5),
                text("note", words.SUBJECTS, "for {}", "with note {}"),
            ),
            (
                "send |{amount} dollars to {person}",
                "pay |{person} {amount} dollars",
                "transfer |{amount} dollars to {person}",
            ),
        ),
        Tool(
            "stock_price",
            (text("company", words.COMPANIES), _ON_DAY),
            (
                "what is the stock price |of {company}",
                "how much is a share |of {company}",
                "get the stock price |of {company}",
            ),
        ),
        Tool(
            "split_bill",
            (
                decimal("total", 10, 99),
                whole("people", 2, 9),
                whole("tip", 1, 20, "with {} percent tip", "with a tip of {} percent", default=10),
            ),
            (
                "split a bill |of {total} between {people} people",
                "divide |{total} dollars among {people} people",
                "what does each of us pay |of {total} with {people} people",
            ),
        ),
    ),
    "math": (
        Tool(
            "add_numbers",
            (several("numbers", range(2, 99)),),
            ("add |{numbers}", "what is the sum |of {numbers}", "sum up |{numbers}"),
        ),
        Tool(
            "find_mean",
            (several("numbers", range(2, 99)),),
            ("what is the mean |of {numbers}", "find the average |of {numbers}"),
        ),
        Tool(
            "triangle_area",
            (decimal("base", 1, 30), decimal("height", 1, 30)),
            (
                "what is the area of a triangle |with base {base} and height {height}",
                "find the area of a triangle |of height {height} and base {base}",
                "how big is a triangle |with height {height} and base {base}",
            ),
        ),
        Tool(
            "random_number",
            (whole("low", 1, 20), whole("high", 21, 999)),
            (
                "give me a random number |between {low} and {high}",
                "pick a number |from {low} to {high}",
                "draw a number |between {low} and {high}",
            ),
        ),
        Tool(
            "is_prime",
            (whole("number", 11, 9999),),
            (
                "is the number |{number} prime",
                "check whether |{number} is a prime",
                "find out if |{number} is prime",
            ),
        ),
    ),
    "mail": (
        Tool(
            "send_mail",
            (
                text("person", words.PEOPLE),
                text("subject", words.SUBJECTS),
                flag("urgent", "and mark it urgent", "as urgent mail"),
            ),
            (
                "send |{person} a mail about {subject}",
                "write a mail |to {person} about {subject}",
                "mail |{person} about {subject}",
            ),
        ),
        Tool(
            "send_text",
            (text("person", words.PEOPLE), text("text", words.TEXTS)),
            ("text |{person} {text}", "tell |{person} {text}", "send the text |{text} to {person}"),
        ),
        Tool(
            "call_person",
            (
                text("person", words.PEOPLE),
                flag("speaker", "on speaker", "with the speaker on"),
                whole("minutes", 5, 60, "in {} minutes", step=5),
            ),
            ("call |{person}", "phone |{person}", "i want to talk |to {person}"),
        ),
    ),
    "health": (
        Tool(
            "log_run",
            (decimal("km", 1, 30), whole("minutes", 5, 240)),
            (
                "log a run |of {km} km in {minutes} minutes",
                "i ran |{km} km in {minutes} minutes",
                "note a run |over {km} km in {minutes} minutes",
            ),
        ),
        Tool(
            "log_sleep",
            (decimal("hours", 2, 12), _ON_DAY),
            ("i slept |{hours} hours", "log |{hours} hours of sleep", "note that i slept |{hours} hours"),
        ),
        Tool(
            "find_doctor",
            (choice("field", "heart skin eye child"), _CITY),
            (
                "find |a {field} doctor in {city}",
                "i need |a {field} doctor in {city}",
                "who is |a good {field} doctor in {city}",
            ),
        ),
    ),
    "shop": (
        Tool(
            "find_item",
            (
                text("item", words.ITEMS),
                text("color", words.COLORS, "in {}", "in the color {}"),
                whole("limit", 10, 400, "for at most {} dollars", "below {} dollars", step=10),
            ),
            ("find |a {item}", "search for |a {item}", "look for |a {item}", "i want to buy |a {item}"),
        ),
        Tool(
            "fill_cart",
            (
                text("item", words.ITEMS),
                whole("count", 2, 30, "{} times", default=1),
                flag("gift", "as a gift", "wrapped as a gift"),
            ),
            ("put |the {item} into my cart", "fill my cart |with the {item}", "add |the {item} to the cart"),
        ),
        Tool(
            "track_parcel",
            (whole("number", 100, 99999),),
            ("where is parcel |{number}", "track the parcel |{number}", "follow parcel number |{number}"),
        ),
    ),
    "news": (
        Tool(
            "get_news",
            (
                text("topic", words.TOPICS),
                whole("articles", 2, 20, "in {} articles", "with {} articles", default=5),
            ),
            (
                "show the news |about {topic}",
                "what is new |in {topic}",
                "get news |on {topic}",
            ),
        ),
        Tool(
            "translate",
            (text("word", words.WORDS), text("language", words.LANGUAGES)),
            (
                "translate |{word} to {language}",
                "what is |{word} in {language}",
                "how do you say |{word} in {language}",
            ),
        ),
        Tool(
            "define_word",
            (text("word", words.WORDS),),
            ("what does |{word} mean", "define |{word}", "explain the word |{word}"),
        ),
    ),
    "sport": (
        Tool(
            "match_result",
            (text("team", words.TEAMS), whole("year", 1950, 2024, "in {}", "in the year {}")),
            (
                "how did the match end |for the {team}",
                "show the result |of the {team}",
                "what was the result |of the {team}",
            ),
        ),
        Tool(
            "book_court",
            (choice("sport", "tennis squash badminton"), whole("hour", 6, 23)),
            (
                "book |a {sport} court at {hour} o'clock",
                "reserve |a {sport} court for {hour} o'clock",
                "i want to play |{sport} at {hour} o'clock",
            ),
        ),
    ),
    "film": (
        Tool(
            "find_film",
            (text("genre", words.FILM_GENRES), whole("year", 1950, 2024, "from {}", "made in {}")),
            ("find |a {genre} film", "i want to watch |a {genre} film", "show me |a {genre} film"),
        ),
        Tool(
            "rate_film",
            (text("title", words.TITLES), whole("stars", 1, 5)),
            ("rate |{title} with {stars} stars", "give |{title} {stars} stars"),
        ),
    ),
    "pets": (
        Tool(
            "feed_pet",
            (text("pet", words.PETS), whole("grams", 10, 300, step=5)),
            ("feed |the {pet} {grams} grams", "give |the {pet} {grams} grams of food"),
        ),
    ),
    "files": (
        Tool(
            "copy_file",
            (text("file", words.FILES), text("folder", words.FOLDERS)),
            ("copy |{file} to {folder}", "copy the file |{file} into {folder}"),
        ),
        Tool(
            "delete_file",
            (text("file", words.FILES), text("folder", words.FOLDERS, "in {}", "from the folder {}")),
            ("delete |{file}", "remove the file |{file}", "throw away |{file}"),
        ),
    ),
}

NEW: dict[str, tuple[Tool, ...]] = {
    "garden": (
        Tool(
            "water_plant",
            (text("plant", words.PLANTS), decimal("liters", 1, 9), _ON_DAY),
            ("water |the {plant} with {liters} liters", "give |the {plant} {liters} liters of water"),
        ),
        Tool(
            "sow_seeds",
            (text("seed", words.SEEDS), whole("depth", 1, 15), whole("rows", 2, 12, "in {} rows", default=1)),
            ("sow |{seed} at depth {depth}", "plant |{seed} at a depth of {depth}"),
        ),
    ),
    "astronomy": (
        Tool(
            "aim_telescope",
            (text("star", words.STARS), whole("minutes", 2, 60, "for {} minutes", default=10)),
            ("aim the telescope |at {star}", "point the telescope |to {star}"),
        ),
        Tool(
            "planet_distance",
            (text("planet", words.PLANETS), choice("unit", "miles meters", "in {}", default="miles")),
            ("how far away is |the planet {planet}", "what is the distance |of {planet}"),
        ),
    ),
    "laboratory": (
        Tool(
            "mix_liquids",
            (several("liquids", words.LIQUIDS), flag("hot", "and keep it hot", "while it is hot")),
            ("mix |{liquids}", "stir |{liquids}", "make a mix |of {liquids}"),
        ),
        Tool(
            "cool_sample",
            (whole("sample", 10, 999), decimal("hours", 1, 20)),
            ("cool sample |{sample} for {hours} hours", "keep sample |{sample} cool for {hours} hours"),
        ),
    ),
    "printing": (
        Tool(
            "print_page",
            (
                whole("page", 1, 900),
                whole("copies", 2, 30, "with {} copies", "in {} copies", default=1),
                text("paper", words.COLORS, "on {} paper"),
            ),
            ("print page |{page}", "i need a print |of page {page}"),
        ),
        Tool(
            "bind_book",
            (text("title", words.TITLES), choice("cover", "leather paper linen")),
            ("bind |{title} in {cover}", "give |{title} a cover of {cover}"),
        ),
    ),
    "robots": (
        Tool(
            "move_robot",
            (choice("side", "left right forward back"), decimal("meters", 1, 20)),
            ("move the robot |{side} by {meters} meters", "let the robot go |{meters} meters {side}"),
        ),
        Tool(
            "charge_robot",
            (
                whole("percent", 10, 100),
                flag("fast", "in fast mode", "as fast charge"),
            ),
            ("charge the robot |to {percent} percent", "load the robot battery |to {percent} percent"),
        ),
    ),
    "sewing": (
        Tool(
            "cut_cloth",
            (
                text("cloth", words.CLOTHS),
                decimal("meters", 1, 9),
                text("color", words.COLORS, "in {}", "of color {}"),
            ),
            ("cut |{meters} meters of {cloth}", "i need |{meters} meters of {cloth} cloth"),
        ),
    ),
    "water": (
        Tool(
            "hire_boat",
            (choice("boat", words.BOATS), whole("hours", 1, 12), _ON_DAY),
            ("hire |a {boat} for {hours} hours", "rent |a {boat} boat for {hours} hours"),
        ),
        Tool(
            "log_fish",
            (text("fish", words.FISH), whole("weight", 1, 60)),
            ("i caught |a {fish} of weight {weight}", "log |a {fish} with a weight of {weight}"),
        ),
    ),
    "museum": (
        Tool(
            "buy_ticket",
            (text("museum", words.PLACES), whole("adults", 1, 9), flag("guide", "with a guide")),
            (
                "buy a ticket |for {museum} with {adults} adults",
                "get museum tickets |for {adults} adults at {museum}",
            ),
        ),
    ),
}
