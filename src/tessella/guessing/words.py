"""What names and labels of columns say, in the languages of European and American surveys.

A name is compared as words without accents ("NºHogar", "person_id", "UTILITYID"), and as a whole
with the names that the great surveys use. A word alone is weak evidence: who asks says what the
values must look like.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property


def _ordered(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _set(text: str) -> frozenset[str]:
    return frozenset(_ordered(text))


# Words that name a respondent's number, address or account, whatever stands in the column.
IDENTIFIER = _set(
    "id ids identifier identification identificador identificacion identifiant identificativo "
    "identifikator kennung kennnummer kennzeichen uuid guid ssn nin nif nie dni cif nir bsn cpf "
    "cpr curp pesel oib passport pasaporte passeport passaporto reisepass iban login username "
    "matricula matricola matricule matrikel matrikelnummer personnummer personennummer "
    "steuernummer sozialversicherungsnummer versichertennummer kundennummer pid caseid mergeid"
)
CONTACT = _set(
    "email mail correo phone telephone telefono telefon telefone tel mobile movil handy "
    "handynummer telefonnummer address adresse direccion indirizzo endereco adres street strasse "
    "calle rue via hausnummer"
)
# Words that name a person or firm, where the column holds text.
NAME = _set(
    "name surname firstname lastname fullname forename nombre nombres apellido apellidos nom "
    "prenom nome cognome sobrenome apelido vorname nachname familienname naam voornaam achternaam "
    "imie nazwisko navn fornavn efternavn etunimi sukunimi"
)
_SOMEONES_ID = re.compile(
    r"(p|u|h|user|person|personal|patient|respondent|member|employee|student|customer|client"
    r"|account|case|record|firm|company|enterprise|utility|subject|panel|worker|pupil|establishment"
    r"|participant)(id|ids|nr|no|num|number|nummer)"
)
# Bare nouns: the number of one of these, where there are many.
SOMEONE = _set(
    "person persona personne individual individuo individu subject subjekt sujeto patient paciente "
    "respondent participant proband student pupil schueler alumno eleve child kind nino enfant "
    "mother mom madre mere father family familia familie famille firm firma company empresa "
    "enterprise entreprise unternehmen establishment plant betrieb utility farm worker employee "
    "trabajador empleado teacher professor prof customer client cliente kunde"
)
# Parts of a name, which many people share.
_PART_OF_NAME = _set(
    "first last given middle sur family surname firstname lastname forename nombre apellido "
    "apellidos nombres prenom cognome sobrenome apelido vorname nachname familienname voornaam "
    "achternaam imie nazwisko fornavn efternavn etunimi sukunimi"
)
# A number that stands for something: an identifier if it is nearly unique, else a code.
NUMBER = _set("no nr num number numero nummer numer nummern key clave schluessel ref serial seq")
_ENDS_IN_NUMBER = re.compile(r".+(num|nummer|number|numero)")
_COUNTED = re.compile(r"\b(number|no|nr|num|numero|nombre|nummer|count|anzahl)\s*(of|de|der|d)\b")
HOUSEHOLD = _set(
    "hh hid hhid hhno hhnr hhnum household householdid householdno haushalt haushaltsnummer hogar "
    "menage foyer famiglia nucleo domicilio agregado huishouden husholdning hushall"
)
_BESIDE_HOUSEHOLD = IDENTIFIER | NUMBER | _set("ori orig original of de del der the")
PLACE = _set(
    "region state country county province provincia provincie district municipality municipio "
    "commune comune gemeinde city town zone area department departement land kreis canton nuts "
    "puma tract ward school sch village ctry continent clinic hospital centre center zentrum site "
    "cluster institution inst birthplace class klasse clase classe"
)
# Lists whose entries have numbers; a word of measures may be beside none of them ("city size").
LISTED = (PLACE - _set("school sch area land zone")) | _set(
    "sector sektor industry branche ramo rama occupation occ beruf ocupacion profession profesion "
    "nationality nationalite nacionalidad citizenship religion denomination ethnicity language "
    "party brand"
)
_BESIDE_LISTED = _set("of birth born residence home work current main last job at in the de")
_WEIGHS = re.compile(
    r"(per|pers|person|hh|hhold|household|fin|final|samp|sampling|survey|pop|design|calib|analysis"
    r"|base|post|cross|long|int|interview|exam)(weights?|wgts?|wts?)"
)
WEIGHT = _set(
    "weight weights wgt wgts wt wts pweight fweight weighting gewicht gewichtung poids ponderation "
    "ponderacion ponderador peso pesos vikt waga gewichten hochrechnungsfaktor"
)
SAMPLING = _set(
    "sampling sample survey design person personal household cross sectional crosssectional final "
    "expansion calibrated calibration post stratification poststratification grossing population "
    "analysis muestral hochrechnung sondage replicate longitudinal base wgt wgts pweight fweight "
    "wts hochrechnungsfaktor"
)
BODY = _set(
    "body birth kg kgs lb lbs net gross gram grams height koerper corporal corporel car vehicle "
    "brain liver heart"
)
CODE = _set(
    "code codes cod codigo codice koodi kod kode nace isco isic naics nuts fips zip zipcode plz "
    "postcode postleitzahl postal icd puma coicop cnae ateco naf insee ags stratum strata psu "
    "estrato schicht"
)
_ENDS_IN_CODE = re.compile(r".+(code|kode|cod|codigo|plz|nace|isco)")
YEARS = _set(
    "age ages year years yr yob edad alter eta idade jahr jahre annee annees ano anos anno anni "
    "birthyear leeftijd ika alder aar"
)
TIMES = YEARS | _set(
    "month months mes monat mois mese week weeks semana woche semaine day days dia tag jour "
    "quarter trimestre quartal date time period periodo wave welle ola round visit occasion "
    "session term semester trial duration tenure experience exper"
)
LATITUDE = _set("lat latitude latitud latitudine breitengrad breite")
LONGITUDE = _set("lon lng long longitude longitud longitudine laengengrad laenge")
# Labels of values that say that there is no value.
_NO_VALUE = re.compile(
    r"\b(refus|missing|not applicable|n/a|na\b|don'?t know|do not know|dk\b|no answer|not stated|"
    r"unknown|not available|inapplicable|no sabe|no contesta|ns/nc|no procede|nicht zutreffend|"
    r"keine angabe|weiss nicht|verweigert|sans objet|ne sait pas|refuse|non applicabile|non so|"
    r"nao sabe|nao responde|sin respuesta|no aplica)",
)

# Names of the great surveys. A household's number is that of a unit; a person's is one, too, where
# it repeats. EU-SILC, ESS, LFS, DHS, ACS, CPS, IPUMS, SOEP, UKHLS, HRS, SHARE, NHANES, PISA.
HOUSEHOLD_NAMES = _set(
    "db030 hb030 rb040 px030 rx030 hhnum hhid serialno serial cpsid hrhhid hidnum phseq hseq hidp "
    "qstnum"
)
PERSON_NAMES = _set(
    "rb030 pb030 idno caseid peridnum cpsidp pid pidp mergeid seqn seqno cntstuid hhidpn mcaseid"
)
# Persons' weights before households': the first one that is there weighs the records.
WEIGHT_NAMES = _ordered(
    "rb050 pb040 rb060 pb060 rb062 anweight pspwght pweight dweight coeff coef coeffy factorel "
    "fexp facexp extri v005 mv005 d005 pwgtp marsupwt wtfinl afnlwgt fnlwgt asecwt perwt pwsswgt "
    "pwcmpwgt wtint2yr wtmec2yr llcpwt finalwt wfstuwt senwt phrf samplingweight pw "
    "db090 db095 wgtp hhwt hwtfinl hwhhwgt hsupwgt hv005 hhrf householdweights householdweight"
)
_REPLICATE = re.compile(
    r"(pwgtp|wgtp|repwtp|repwt|repwgt|wrepl|wfsturwt|wtrep|brr|bsw|jkw|repweight|rweight)_?\d{1,3}"
)


@dataclass(frozen=True)
class Words:
    """The name of a column, or its label, as words in lower case without accents."""

    text: str

    @classmethod
    def of(cls, text: object) -> Words:
        """Take a name or a label."""
        apart = unicodedata.normalize("NFKD", str(text).replace("ß", "ss"))
        return cls("".join(sign for sign in apart if not unicodedata.combining(sign)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words; "utilityID" has two, and figures are in none."""
        return tuple(w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", self.text))

    @cached_property
    def flat(self) -> str:
        """Letters and figures alone, as names of surveys are compared."""
        return re.sub(r"[^a-z0-9]", "", self.text.lower())

    def any(self, *lists: frozenset[str]) -> bool:
        """Return whether a word is in one of the lists."""
        return any(word in known for known in lists for word in self.words)

    @property
    def counts(self) -> bool:
        """Whether it is a number of something: "number of persons"."""
        return bool(_COUNTED.search(" ".join(self.words)))

    @property
    def names_household(self) -> bool:
        """Whether it is a household's number and nothing else: no household income."""
        if self.flat in HOUSEHOLD_NAMES:
            return True
        words = set(self.words)
        return bool(words & HOUSEHOLD) and words <= HOUSEHOLD | _BESIDE_HOUSEHOLD

    @property
    def names_someone(self) -> bool:
        """Whether it names a respondent by a number or a name in letters."""
        known = self.flat in PERSON_NAMES or self.any(IDENTIFIER)
        return known or any(_SOMEONES_ID.fullmatch(word) for word in self.words)

    @property
    def names_place(self) -> bool:
        """Whether it is about a place, whose number is a code."""
        return self.any(PLACE)

    @property
    def is_noun(self) -> bool:
        """Whether it is a bare noun for a respondent: "firm", "individual"."""
        return len(self.words) == 1 and self.words[0] in SOMEONE

    @property
    def is_part_of_name(self) -> bool:
        """Whether it is a first or a last name, which others have, too."""
        return self.any(_PART_OF_NAME)

    @property
    def is_listed(self) -> bool:
        """Whether it is the number of an entry of a list: "state", "sector", "birthplace"."""
        words = set(self.words)
        beside = _BESIDE_LISTED | IDENTIFIER | NUMBER
        return bool(words & LISTED) and words <= LISTED | beside and not self.counts

    @property
    def is_name(self) -> bool:
        """Whether it is the name of somebody or something."""
        return self.any(NAME) or any(word.endswith("name") for word in self.words)

    @property
    def is_number(self) -> bool:
        """Whether it is a number that stands for something: "school number", "snum"."""
        if self.counts or not self.words:
            return False
        last = self.words[-1]
        return last in NUMBER or bool(_ENDS_IN_NUMBER.fullmatch(last))

    @property
    def is_code(self) -> bool:
        """Whether it is a code of a classification."""
        return self.any(CODE) or any(_ENDS_IN_CODE.fullmatch(word) for word in self.words)

    @property
    def is_weight(self) -> bool:
        """Whether it may be a sampling weight."""
        if self.flat in WEIGHT_NAMES:
            return True
        weighs = any(
            word in WEIGHT or word.endswith("wgt") or _WEIGHS.fullmatch(word) for word in self.words
        )
        return weighs and not self.any(BODY)

    @property
    def is_sampling_weight(self) -> bool:
        """Whether it is a sampling weight by a survey's name, or by words that say so."""
        known = self.flat in WEIGHT_NAMES or any(
            word.endswith("wgt") or _WEIGHS.fullmatch(word) for word in self.words
        )
        return known or (self.is_weight and self.any(SAMPLING))

    @property
    def is_replicate_weight(self) -> bool:
        """Whether it is one of the weights by which sampling errors are computed."""
        return bool(_REPLICATE.fullmatch(self.flat)) or (
            self.is_weight and "replicate" in self.words
        )


def says_missing(label: str) -> bool:
    """Return whether the label of a value says that there is none."""
    return bool(_NO_VALUE.search(Words.of(label).text.lower()))
