"""Words that calls ask about. Names, cities and colours are those of the text-to-SQL sample."""

from __future__ import annotations

from itertools import product

from tasks.data.text2sql.words import CITIES as _CITIES
from tasks.data.text2sql.words import COLORS as _COLORS
from tasks.data.text2sql.words import NAMES as _NAMES

CITIES = tuple(_CITIES.split())
COLORS = tuple(_COLORS.split())
PEOPLE = tuple(_NAMES["person"][0])
TITLES = tuple(map(" ".join, product(*_NAMES["work"])))
PLACES = tuple(map(" ".join, product(*_NAMES["place"])))

DAYS = "monday tuesday wednesday thursday friday saturday sunday"
ROOMS = "kitchen bedroom bathroom hall office garage cellar attic"
DISHES = "soup pasta curry salad bread stew risotto pancakes lasagne chili omelette dumplings"
FOODS = "rice bread cheese apple chicken yogurt pasta beans salmon honey tofu butter walnut banana"
TOPPINGS = "cheese ham olives mushrooms onions peppers spinach corn tuna garlic"
GENRES = "jazz rock folk opera soul blues metal disco"
FILM_GENRES = "comedy drama crime horror romance western action war"
COMPANIES = "acme bolt corva dento elmar fyra gusto hexa ivora kanto"
CURRENCIES = "euro dollar yen peso franc rupee krona pound"
ITEMS = "lamp chair coat bag clock mirror shirt rug phone watch tent mug jacket drum knife kettle"
SUBJECTS = "lunch rent tennis homework money holidays school invoices training"
EVENTS = "lunch tennis dinner yoga school football training shopping"
TEXTS = ("hello", "thank you", "see you soon", "good luck", "well done", "good night", "on my way")
TOPICS = "history physics music law sport art travel health money science weather politics"
WORDS = "moon river bridge garden window winter friend island market forest shadow feather"
LANGUAGES = "french english hindi arabic spanish german swahili italian polish greek"
TEAMS = "lions tigers eagles sharks wolves hawks bears comets rockets giants"
PETS = "cat dog rabbit hamster parrot turtle pony"
FILES = "notes report letter budget photo diary contract invoice plan thesis"
FOLDERS = "work home archive backup travel school taxes"
PLANTS = "rose tulip fern cactus ivy orchid lily basil"
SEEDS = "carrot bean pea lettuce tomato pumpkin radish onion"
STARS = "vega sirius rigel antares polaris deneb altair spica"
PLANETS = "mars venus saturn jupiter mercury neptune uranus"
LIQUIDS = "water acid oil alcohol vinegar ink glycerin syrup"
CLOTHS = "silk cotton linen wool velvet denim felt"
BOATS = "canoe kayak ferry yacht raft barge"
FISH = "trout salmon pike carp perch eel tuna"

# Questions that no tool answers.
CHATS = (
    "who wrote {}",
    "tell me a joke about {}",
    "why is the sky {}",
    "do you like {}",
    "what do you think about {}",
    "sing something about {}",
    "have you ever been to {}",
    "my name is {}",
    "are you a friend of {}",
    "good morning {}",
    "which is better, {} or {}",
    "write a poem about {}",
    "what rhymes with {}",
    "i am bored of {}",
)
