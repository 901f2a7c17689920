"""The twenty databases of the embedded sample: domains, columns and rows invented for it."""

from __future__ import annotations

from tasks.data.text2sql import words as w
from tasks.data.text2sql.model import Table, amount, number, text, year

_SPECIES = text("species", "bear camel deer goat lion monkey otter panda tiger zebra")
_CROP = text("crop", "barley beans corn cotton maize oats potato rice rye wheat", "growing {}")
_CUISINE = text("cuisine", "greek indian italian korean mexican polish thai turkish", "serving {} food")
_CATEGORY = text("category", "book clothes food furniture garden music sport toy")
_FIELD = text("field", "biology chemistry geology medicine optics physics robotics", "working in {}")
_POSITION = text("position", "defender forward goalkeeper midfielder striker winger", "playing as {}")

TRAINING: dict[str, tuple[Table, ...]] = {
    "music": (
        Table("singer", "person", (w.AGE, w.COUNTRY, w.AWARDS)),
        Table("album", "work", (w.GENRE, w.RELEASE_YEAR, amount("copies", 1000, 9900, 100)), ("singer",)),
        Table("concert", "work", (w.CITY, w.VISITORS), ("singer",)),
    ),
    "library": (
        Table("author", "person", (w.COUNTRY, w.BIRTH_YEAR)),
        Table("book", "work", (w.LANGUAGE, w.PAGES, w.PRICE), ("author",)),
        Table("review", "work", (w.RATING, w.DAY), ("book",)),
    ),
    "school": (
        Table("teacher", "person", (w.AGE, w.SALARY, w.HOME_CITY)),
        Table("course", "work", (w.TOPIC, w.LEVEL, amount("hours", 10, 90, 2)), ("teacher",)),
        Table("exam", "work", (w.DAY, w.DURATION), ("course",)),
    ),
    "hospital": (
        Table("ward", "place", (w.FLOORS, amount("beds", 4, 90, 2))),
        Table("doctor", "person", (w.SALARY, w.YEARS_WORKED, w.GENDER), ("ward",)),
        Table("patient", "person", (w.AGE, w.HOME_CITY), ("doctor",)),
    ),
    "airline": (
        Table("airport", "place", (w.CITY, w.COUNTRY, w.OPENING_YEAR)),
        Table("airplane", "thing", (w.SEATS, w.SPEED, w.STATUS)),
        Table("flight", "work", (w.DISTANCE, w.DAY, w.PRICE), ("airport", "airplane")),
    ),
    "zoo": (
        Table("keeper", "person", (w.AGE, w.YEARS_WORKED)),
        Table("enclosure", "place", (w.AREA, w.REGION), ("keeper",)),
        Table("animal", "thing", (_SPECIES, w.WEIGHT, w.AGE), ("enclosure",)),
    ),
    "gallery": (
        Table("museum", "place", (w.CITY, w.VISITORS, w.OPENING_YEAR)),
        Table("artist", "person", (w.COUNTRY, w.BIRTH_YEAR)),
        Table("painting", "work", (w.STYLE, w.PRICE, w.HEIGHT), ("museum", "artist")),
    ),
    "dining": (
        Table("restaurant", "place", (w.CITY, w.SEATS, _CUISINE)),
        Table("chef", "person", (w.AGE, w.SALARY, w.COUNTRY), ("restaurant",)),
        Table("dish", "thing", (w.PRICE, amount("calories", 80, 990, 10)), ("chef",)),
    ),
    "football": (
        Table("club", "place", (w.CITY, w.FOUNDING_YEAR, w.BUDGET)),
        Table("player", "person", (w.AGE, w.HEIGHT, _POSITION), ("club",)),
        Table("game", "work", (w.DAY, w.VISITORS), ("club",)),
    ),
    "farming": (
        Table("farmer", "person", (w.AGE, w.REGION)),
        Table("field", "place", (w.AREA, _CROP), ("farmer",)),
        Table("tractor", "thing", (w.POWER, w.BRAND, w.PRICE), ("farmer",)),
    ),
    "shipping": (
        Table("harbor", "place", (w.COUNTRY, w.DEPTH, w.OPENING_YEAR)),
        Table("captain", "person", (w.AGE, w.YEARS_WORKED)),
        Table("ship", "thing", (w.LENGTH, w.SPEED, w.FUEL), ("harbor", "captain")),
    ),
    "shop": (
        Table("supplier", "place", (w.COUNTRY, w.RATING)),
        Table("product", "thing", (_CATEGORY, w.PRICE, w.WEIGHT), ("supplier",)),
        Table("complaint", "work", (w.STATUS, w.DAY, w.COST), ("product",)),
    ),
    "cinema": (
        Table("director", "person", (w.COUNTRY, w.AGE, w.AWARDS)),
        Table("movie", "work", (w.GENRE, w.DURATION, w.RELEASE_YEAR), ("director",)),
        Table("actor", "person", (w.GENDER, w.SALARY), ("movie",)),
    ),
    "railway": (
        Table("station", "place", (w.CITY, amount("platforms", 1, 30), w.OPENING_YEAR)),
        Table("train", "thing", (w.SPEED, w.FUEL, w.COLOR), ("station",)),
        Table("driver", "person", (w.AGE, w.SALARY), ("train",)),
    ),
    "travel": (
        Table("hotel", "place", (w.CITY, w.STARS, amount("rooms", 10, 400, 5))),
        Table("guest", "person", (w.AGE, w.COUNTRY), ("hotel",)),
        Table("tour", "work", (w.SEASON, w.PRICE, w.DURATION), ("hotel",)),
    ),
    "research": (
        Table("lab", "place", (w.BUDGET, w.FOUNDING_YEAR, w.CITY)),
        Table("scientist", "person", (w.AGE, _FIELD, w.AWARDS), ("lab",)),
        Table("experiment", "work", (w.STATUS, w.COST, w.DURATION), ("scientist",)),
    ),
}

NEW: dict[str, tuple[Table, ...]] = {
    "beekeeping": (
        Table("beekeeper", "person", (w.AGE, w.REGION, w.YEARS_WORKED)),
        Table("hive", "thing", (w.COLOR, w.WEIGHT, year("setup_year", "set up", 1990)), ("beekeeper",)),
        Table("harvest", "work", (w.SEASON, amount("jars", 5, 200), w.PRICE), ("hive",)),
    ),
    "astronomy": (
        Table("observatory", "place", (w.COUNTRY, w.BUILDING_YEAR, number("altitude", 200, 5000, 50))),
        Table("telescope", "thing", (w.WEIGHT, number("aperture", 10, 900, 10), w.BRAND), ("observatory",)),
        Table("comet", "thing", (w.SPEED, w.SIZE, year("sighting_year", "sighted", 1900)), ("telescope",)),
    ),
    "circus": (
        Table("circus", "place", (w.COUNTRY, amount("tents", 1, 40), w.FOUNDING_YEAR)),
        Table("acrobat", "person", (w.AGE, w.HEIGHT, w.GENDER), ("circus",)),
        Table("stunt", "work", (w.DURATION, text("risk", "low medium high extreme"), w.SCORE), ("acrobat",)),
    ),
    "pottery": (
        Table("potter", "person", (w.AGE, w.HOME_CITY, w.SALARY)),
        Table(
            "kiln",
            "thing",
            (
                w.FUEL,
                number(
                    "heat",
                    600,
                    1400,
                    10,
                    more="hotter than",
                    less="cooler than",
                    most="hottest",
                    least="coolest",
                ),
            ),
        ),
        Table("vase", "thing", (w.COLOR, w.PRICE, w.HEIGHT), ("potter", "kiln")),
    ),
}
