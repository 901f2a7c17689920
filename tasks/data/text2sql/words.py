"""Word lists: names, attributes, and the entities that synthetic schemas recombine."""

from __future__ import annotations

from tasks.data.text2sql.model import Attribute, Kind, amount, number, text, year

_FIRST = (
    "ada abel alma anna ben bruno carl cleo dana dora egon elsa emil eva finn flora george gina hans "
    "heidi hugo ida igor ines iris ivan jack jana jonas julia karl kira lars lena leo lisa luca maja "
    "marco maria max mila mona nina nora olga omar otto paul petra rosa ruth sam sara sven tara theo "
    "tim tina uma vera victor walt wanda yara zoe"
).split()
_LAST = (
    "adler archer baker barnes bell berg bishop black brook carver chen clark cole costa cruz dahl "
    "duval egger falk farmer fisher fox gray green hall hardy hart hill horn hunt jensen keller king "
    "kowal lane lang lopez marsh meyer miller moore nash novak olsen park pike porter potts quinn "
    "reed rossi roy silva stone sutter tanaka vogel wagner ward weber west wolf wood young zeller"
).split()
_ADJECTIVES = (
    "amber ancient blue bold brave bright broken calm clear cold copper crystal dark deep distant dry "
    "dusty early empty fading first frozen gentle giant golden grand green hidden high hollow iron "
    "last late little lonely long lost lucky new noble north old pale quiet rapid red royal rusty "
    "sharp silent silver small smooth soft south stormy strong sunny swift tall tiny warm white wide "
    "wild wise"
).split()
_PLACES = (
    "bay bridge brook canyon cliff corner creek cross dale field ford forest garden gate grove harbor "
    "haven heath hill island lake market meadow mill moor oak park peak pine point pond port ridge "
    "river shore spring square valley view village water well wood yard"
).split()
_THINGS = (
    "arrow badger beacon bear breeze castle comet crown dragon eagle ember falcon feather flame fox "
    "hammer hawk heron horse jewel lantern lion lynx marble mirror moth otter owl panther pearl "
    "pepper phoenix raven rocket rose sail shadow spark star storm swan thistle thunder tiger trail "
    "violet wave willow wolf"
).split()
_WORKS = (
    "answer autumn bird child circle city cloud day door dream echo fire flower friend game ghost "
    "heart hour house island journey king letter light moment moon morning mountain night ocean path "
    "promise queen question rain road sea season secret silence sister song stone summer sun tale "
    "tree voice winter wish word world"
).split()

NAMES: dict[Kind, tuple[list[str], list[str]]] = {
    "person": (_FIRST, _LAST),
    "place": (_ADJECTIVES, _PLACES),
    "thing": (_ADJECTIVES, _THINGS),
    "work": (_ADJECTIVES, _WORKS),
}

COUNTRIES = (
    "peru chad france japan kenya norway brazil canada egypt india italy spain cuba ghana nepal poland "
    "chile greece"
)
CITIES = (
    "lima oslo paris cairo tokyo rome delhi quito turin bern lyon porto accra basel davos ghent malmo tampa"
)
COLORS = "red blue green black white yellow brown gray orange purple pink"

COUNTRY = text("country", COUNTRIES, "from {}")
CITY = text("city", CITIES, "in {}")
HOME_CITY = text("home_city", CITIES)
COLOR = text("color", COLORS)
MATERIAL = text("material", "wood steel glass stone copper silk paper clay brass wool", "made of {}")
LANGUAGE = text(
    "language", "french english hindi arabic spanish german swahili italian polish greek", "in {}"
)
GENRE = text("genre", "jazz rock folk opera drama comedy crime romance horror poetry")
STYLE = text("style", "modern gothic baroque rustic classic abstract formal casual")
LEVEL = text("level", "beginner basic middle advanced expert master")
STATUS = text("status", "open closed active pending ready retired lost")
REGION = text("region", "north south east west central coast", "in the {} region")
SEASON = text("season", "spring summer autumn winter", "in {}")
SIZE = text("size", "tiny small medium large huge")
GENDER = text("gender", "female male")
JOB = text("job", "clerk cook guard lawyer nurse painter pilot plumber tailor waiter")
BRAND = text("brand", "acme bolt corva dento elmar fyra gusto hexa", "by {}", "of brand {}")
SHAPE = text("shape", "round square oval flat long curved")
DAY = text("day", "monday tuesday wednesday thursday friday saturday sunday", "on {}")
TOPIC = text("topic", "history physics music law sport art food travel health money", "about {}")
FUEL = text("fuel", "gas diesel coal solar electric hydrogen", "running on {}")

AGE = number("age", 18, 70, more="older than", less="younger than", most="oldest", least="youngest")
HEIGHT = number("height", 100, 220, more="taller than", less="shorter than", most="tallest", least="shortest")
WEIGHT = number(
    "weight", 10, 900, 5, more="heavier than", less="lighter than", most="heaviest", least="lightest"
)
PRICE = number(
    "price",
    5,
    400,
    more="that cost more than",
    less="that cost less than",
    most="most expensive",
    least="cheapest",
)
SPEED = number("speed", 20, 300, 5, more="faster than", less="slower than", most="fastest", least="slowest")
LENGTH = number(
    "length", 10, 500, 5, more="longer than", less="shorter than", most="longest", least="shortest"
)
DEPTH = number("depth", 2, 90, more="deeper than", less="shallower than", most="deepest", least="shallowest")
SALARY = number(
    "salary", 1000, 9000, 100, more="that earn more than", less="that earn less than", most="best paid"
)
RATING = number("rating", 1, 100, most="best rated", least="worst rated")
AREA = number("area", 10, 900, 10, more="larger than", less="smaller than", most="largest", least="smallest")
CAPACITY = number("capacity", 50, 5000, 50)
BUDGET = number("budget", 100, 9900, 100)
DISTANCE = number("distance", 5, 800, 5)
POWER = number("power", 50, 600, 10, most="most powerful", least="weakest")
DURATION = number("duration", 10, 240, 5)
SCORE = number("score", 10, 99)
RANK = number("rank", 1, 60)
COST = number("cost", 20, 900, 10)
SEATS = amount("seats", 20, 900, 10)
PAGES = amount("pages", 40, 900, 10)
POINTS = amount("points", 5, 150)
VISITORS = amount("visitors", 100, 9900, 100)
MEMBERS = amount("members", 8, 400)
FLOORS = amount("floors", 1, 60)
AWARDS = amount("awards", 0, 40)
WINS = amount("wins", 1, 80)
YEARS_WORKED = amount("years_worked", 1, 40)
STARS = amount("stars", 1, 5)
FOUNDING_YEAR = year("founding_year", "founded", 1850)
OPENING_YEAR = year("opening_year", "opened", 1900)
RELEASE_YEAR = year("release_year", "released")
BUILDING_YEAR = year("building_year", "built", 1900)
BIRTH_YEAR = year("birth_year", "born", 1930, 2005)

ATTRIBUTES: dict[Kind, tuple[Attribute, ...]] = {
    "person": (
        AGE,
        COUNTRY,
        SALARY,
        HEIGHT,
        HOME_CITY,
        GENDER,
        JOB,
        LEVEL,
        SCORE,
        BIRTH_YEAR,
        AWARDS,
        YEARS_WORKED,
        WINS,
        RANK,
        LANGUAGE,
        WEIGHT,
    ),
    "place": (
        CITY,
        COUNTRY,
        CAPACITY,
        REGION,
        OPENING_YEAR,
        FOUNDING_YEAR,
        AREA,
        VISITORS,
        MEMBERS,
        FLOORS,
        SEATS,
        BUDGET,
        STARS,
        STATUS,
        RATING,
    ),
    "thing": (
        COLOR,
        PRICE,
        WEIGHT,
        SPEED,
        LENGTH,
        MATERIAL,
        BRAND,
        SIZE,
        SHAPE,
        POWER,
        BUILDING_YEAR,
        STATUS,
        FUEL,
        COST,
        SEATS,
        DEPTH,
    ),
    "work": (
        GENRE,
        RELEASE_YEAR,
        PAGES,
        LANGUAGE,
        RATING,
        DURATION,
        TOPIC,
        STYLE,
        PRICE,
        DAY,
        SEASON,
        POINTS,
        VISITORS,
        COST,
        LEVEL,
        DISTANCE,
    ),
}

_ENTITIES: dict[Kind, str] = {
    "person": (
        "actor agent artist athlete author baker banker barber boxer butcher buyer captain chef "
        "client clerk coach customer dancer dentist designer director doctor driver editor employee "
        "engineer farmer fisher gardener guard guest guide hunter judge keeper lawyer leader maker "
        "manager mechanic member miner model nurse officer owner painter patient pilot player plumber "
        "poet printer ranger reporter rider runner sailor scientist seller senator singer skater "
        "soldier student swimmer tailor teacher tenant tourist trainer tutor visitor voter waiter "
        "worker writer"
    ),
    "place": (
        "academy airport bakery bank bar beach branch building cafe camp castle church cinema city "
        "clinic club college company county court dam depot district factory farm field firm forest "
        "gallery garage garden gym harbor hospital hotel house island kitchen lab lake library market "
        "mine museum office palace park pharmacy plant port prison pub region resort restaurant river "
        "school shop stable stadium station store street studio team temple theater tower town "
        "university valley village ward warehouse yard zoo"
    ),
    "thing": (
        "airplane animal bag bed bell bicycle bike boat book_case bottle box bridge bus cabin camera "
        "cap car card chair clock coat coin computer cup desk device dish dog door dress drone drum "
        "engine ferry flag fridge gift glove guitar hammer hat horse jacket key kite knife ladder "
        "lamp laptop lens lock machine map mask mirror motor oven parcel pen phone piano pipe plate "
        "pump radio ring robot rocket rope rug sensor ship shirt shoe sofa stone sword table_lamp "
        "tank ticket tool toy tractor train tram tree truck vehicle violin wagon wheel window"
    ),
    "work": (
        "album article ballet blog book class comic concert contest course debate diary essay event "
        "exam exhibition experiment festival film fight flight game lecture lesson letter magazine "
        "manual match meeting mission movie novel opera offer painting paper party photo play podcast "
        "poem poster project race recipe report review seminar series service show song speech story "
        "survey test theory tour trip video visit voyage walk wedding workshop"
    ),
}
ENTITIES: tuple[tuple[str, Kind], ...] = tuple(
    (noun, kind) for kind, nouns in _ENTITIES.items() for noun in nouns.split()
)

# Of invented words: beginnings, middles and ends of their syllables. Many, so that a model which copies these
# words can copy any.
ONSETS = (
    "b c d f g h j k l m n p qu r s t v w y z bl br ch cl cr dr fl fr gl gr pl pr sc sh sk sl sm sn sp st "
    "str sw th tr wh"
).split()
VOWELS = "a e i o u a e i o u ai ea ee ie oa oo ou".split()
CODAS = ["", "", "", *"b ck d ft g l ll lt m mp n nd ng nk nt p r rd rk rm rn rt s sh ss st t th x".split()]
