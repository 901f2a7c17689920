"""Facts that two of IFBench's prompts ask for. Names are in lower case, without accents and punctuation."""

# The 54 members of the United Nations; slashes stand between the names of one.
_AFRICA = (
    "algeria; angola; benin; botswana; burkina faso; burundi; cabo verde/cape verde; cameroon; central "
    "african republic; chad; comoros/union of the comoros; congo/republic of the congo/republic of "
    "congo/congo republic/congo republic of the/congo brazzaville; democratic republic of the "
    "congo/democratic republic of congo/dr congo/drc/congo kinshasa/congo democratic republic of the; "
    "cote d ivoire/ivory coast; djibouti; egypt; equatorial guinea; eritrea; eswatini/swaziland; "
    "ethiopia; gabon; gambia; ghana; guinea; guinea bissau; kenya; lesotho; liberia; libya; madagascar;"
    " malawi; mali; mauritania; mauritius; morocco; mozambique; namibia; niger; nigeria; rwanda; sao "
    "tome and principe; senegal; seychelles; sierra leone; somalia; south africa; south sudan; sudan; "
    "tanzania; togo; tunisia; uganda; zambia; zimbabwe"
).split("; ")
AFRICA = {name: names for names in _AFRICA for name in names.split("/")}
# May be listed, need not be.
AFRICA_DISPUTED = {"western sahara", "sahrawi republic", "sahrawi arab democratic republic", "somaliland"}

# Capitals of Europe north of 45 degrees, and their latitudes.
NORTHERN_CAPITALS = {
    "reykjavik": 64.15,
    "helsinki": 60.17,
    "oslo": 59.91,
    "tallinn": 59.44,
    "stockholm": 59.33,
    "riga": 56.95,
    "moscow": 55.76,
    "copenhagen": 55.68,
    "vilnius": 54.69,
    "minsk": 53.90,
    "dublin": 53.35,
    "berlin": 52.52,
    "amsterdam": 52.37,
    "warsaw": 52.23,
    "london": 51.51,
    "brussels": 50.85,
    "kyiv": 50.45,
    "prague": 50.08,
    "luxembourg": 49.61,
    "paris": 48.86,
    "vienna": 48.21,
    "bratislava": 48.15,
    "budapest": 47.50,
    "vaduz": 47.14,
    "chisinau": 47.01,
    "bern": 46.95,
    "ljubljana": 46.06,
    "zagreb": 45.81,
}
OTHER_NAMES = {"kiev": "kyiv", "berne": "bern", "luxembourg city": "luxembourg", "kishinev": "chisinau"}
# In the order of the public checker, which leaves out Kyiv.
PUBLIC_CAPITALS = tuple(name for name in NORTHERN_CAPITALS if name != "kyiv")
