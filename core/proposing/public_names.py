"""Names of columns whose domain anybody could state, in English and German; see `PublicName`.

Ranges are what a person could live with or a scale allows, not what is usual. A name counts only
where every word of it is known here: `mean_age_gap` is no age.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.message import Message
from core.schema.column import Kind

PERSON_WORDS = frozenset(
    "patient,patients,person,client,customer,employee,member,participant,subject,respondent,child,"
    "mother,father,maternal,paternal,spouse,partner,householder,driver,rider,passenger,applicant,"
    "donor,recipient,patientin,patienten,proband,kunde,kunden,kind,mutter,vater,s".split(",")
)
_EVENT = frozenset(
    "at,of,the,on,in,admission,discharge,diagnosis,death,surgery,enrolment,enrollment,baseline,"
    "onset,entry,screening,bei,der,des,aufnahme,entlassung,diagnose,tod".split(",")
)
_DATE = frozenset(
    "of,the,birth,admission,discharge,diagnosis,death,arrival,departure,booking,accident,pickup,"
    "dropoff,surgery,date,geburts,aufnahme,entlassungs,datum".split(",")
)
_CLOCK = _DATE | {"start", "end"}
_MEASURED = (
    PERSON_WORDS | _EVENT | frozenset("min,max,mean,avg,first,last,resting,value".split(","))
)
_PLACE = frozenset(
    "pickup,dropoff,start,end,home,station,origin,destination,geo,gps,coord,deg,degrees,decimal,"
    "wgs,84".split(",")
)
_SCORE = PERSON_WORDS | _EVENT | frozenset("score,total,class,level,scale,value,min,max".split(","))
_CODES = frozenset("code,codes,iso,3166,1,639,4217,name,the,of".split(","))
_COUNTRY = PERSON_WORDS | frozenset(
    "birth,native,residence,origin,home,destination,shipping,billing".split(",")
)
# beside the words of names that may hold any other ones: what makes them something else
BLOCKERS = frozenset(
    "count,counts,number,num,n,anzahl,total,sum,summe,gesamt,group,gruppe,grp,band,bin,class,"
    "klasse,category,kategorie,range,text,label,diff,difference,differenz,change,aenderung,delta,"
    "growth,wachstum,increase,decrease,anstieg,rank,ratio,rate,interest,zins,yield,return,margin,"
    "markup,error,utilization,utilisation,ltv,dti,predicted,pred,of,z,score,log,std,sd,var,"
    "cutoff,threshold,limit,min,max,width,average,days,months,years".split(",")
)
ANY_WORDS = frozenset("*")
WHOLE, REAL, BOTH = (Kind.INTEGER,), (Kind.NUMBER,), (Kind.INTEGER, Kind.NUMBER)


@dataclass(frozen=True)
class PublicName:
    """What columns of some names hold.

    Attributes:
      phrases: the names as words in lower case, umlauts as two letters, with commas between them.
      low, high: inclusive bounds of numbers; None where only labels are public.
      beside: words that a name may hold too; `ANY_WORDS` for all but `BLOCKERS`.
      kinds: of numbers; microdegrees are whole, degrees are not.
      labels: the list in `core.proposing.public_reference` of columns of text; "" for none.
    """

    phrases: str
    source: Message
    low: float | None = None
    high: float | None = None
    beside: frozenset[str] = frozenset()
    kinds: tuple[Kind, ...] = WHOLE
    labels: str = ""


BIRTH = frozenset(
    "birth,born,birthdate,birthday,dob,geburt,geburtsdatum,geburtstag,geboren".split(",")
)
FLAGS = frozenset("is,has,had,was,ist,hat".split(","))

TIMES = (
    PublicName(
        "birth_year,year_of_birth,yob,birthyear,geburtsjahr,geburts_jahr",
        Message("years of birth from 1900 to 2030"), 1900, 2030, PERSON_WORDS,
    ),
    PublicName("year,jahr", Message("calendar years from 1900 to 2100"), 1900, 2100, _DATE),
    PublicName(
        "month,month_of_year,month_number,month_num,monat", Message("the months of a year"), 1, 12,
        _DATE, labels="months",
    ),
    PublicName(
        "weekday,day_of_week,day_of_week_number,day_of_the_week,dow,wochentag",
        Message("the days of a week"), 0, 7, _DATE, labels="weekdays",
    ),
    PublicName(
        "quarter,quarter_of_year,quartal", Message("the quarters of a year"), 1, 4, _DATE,
        labels="quarters",
    ),
    PublicName(
        "day_of_month,day_of_the_month,birth_day,death_day,tag_im_monat,tag_des_monats,monatstag",
        Message("the days of a month"), 1, 31, _DATE,
    ),
    PublicName("day_of_year,doy,tag_im_jahr", Message("the days of a year"), 1, 366, _DATE),
    PublicName(
        "week_of_year,week_number,calendar_week,isoweek,iso_week,kalenderwoche",
        Message("the weeks of a year"), 0, 53, _DATE,
    ),
    PublicName(
        "hour,hour_of_day,hour_of_the_day,stunde", Message("the hours of a day"), 0, 24,
        _CLOCK,
    ),
    PublicName(
        "minute,minute_of_hour,minute_of_the_hour", Message("the minutes of an hour"), 0, 59,
        _CLOCK,
    ),
    PublicName(
        "hours_per_week,hours_a_week,weekly_hours,stunden_pro_woche,wochenstunden",
        Message("hours in a week"), 0, 168, frozenset("work,worked,working,usual".split(",")), BOTH,
    ),
    PublicName(
        "hours_per_day,hours_a_day,stunden_pro_tag", Message("hours in a day"), 0, 24,
        frozenset("work,worked,working,usual,sleep,screen".split(",")), BOTH,
    ),
    PublicName(
        "days_per_week,days_a_week,tage_pro_woche", Message("days in a week"), 0, 7,
        frozenset("work,worked,working,usual".split(",")), BOTH,
    ),
    PublicName(
        "weeks_per_year,weeks_worked_in_year", Message("weeks in a year"), 0, 53,
        frozenset("work,worked,working,usual".split(",")), BOTH,
    ),
)  # fmt: skip

PEOPLE = (
    PublicName(
        "age,age_years,age_in_years,age_yrs,alter,lebensalter,alter_jahre,alter_in_jahren",
        Message("a human age in years"), 0, 120, PERSON_WORDS | _EVENT, BOTH,
    ),
    PublicName(
        "bmi,body_mass_index", Message("the body mass index of a person in kg/m²"), 10, 80,
        _MEASURED, BOTH,
    ),
    PublicName(
        "heart_rate,heartrate,pulse,pulse_rate,puls,herzfrequenz",
        Message("heart beats of a person per minute"), 0, 300, _MEASURED | {"bpm"}, BOTH,
    ),
    PublicName(
        "systolic,systolic_bp,systolic_blood_pressure,sbp,sys_bp,bp_systolic,"
        "blood_pressure_systolic,systolisch,systolischer_blutdruck,blutdruck_systolisch",
        Message("systolic blood pressure of a person in mmHg"), 0, 300,
        _MEASURED | {"mmhg", "mm", "hg"}, BOTH,
    ),
    PublicName(
        "diastolic,diastolic_bp,diastolic_blood_pressure,dbp,dia_bp,bp_diastolic,"
        "blood_pressure_diastolic,diastolisch,diastolischer_blutdruck,blutdruck_diastolisch",
        Message("diastolic blood pressure of a person in mmHg"), 0, 200,
        _MEASURED | {"mmhg", "mm", "hg"}, BOTH,
    ),
    PublicName(
        "body_temperature,body_temp,koerpertemperatur",
        Message("body temperature of a person in °C or °F"), 20, 115,
        _MEASURED | {"c", "f", "celsius", "fahrenheit"}, BOTH,
    ),
    PublicName(
        "height_cm,height_in_cm,body_height_cm,groesse_cm,koerpergroesse_cm,koerpergroesse_in_cm",
        Message("height of a person in cm"), 20, 275, _MEASURED, BOTH,
    ),
    PublicName(
        "weight_kg,weight_in_kg,body_weight_kg,gewicht_kg,koerpergewicht_kg,koerpergewicht_in_kg",
        Message("weight of a person in kg"), 0, 650, _MEASURED, BOTH,
    ),
    PublicName(
        "spo_2,sp_o_2,sao_2,oxygen_saturation,sauerstoffsaettigung",
        Message("oxygen saturation in percent"), 0, 100, _MEASURED, BOTH,
    ),
    PublicName(
        "gcs,glasgow_coma_scale,glasgow_coma_score", Message("the Glasgow Coma Scale"), 3, 15,
        _SCORE,
    ),
    PublicName(
        "asa,asa_physical_status", Message("ASA physical status classes"), 1, 6,
        PERSON_WORDS | {"class", "score", "grade", "status"},
    ),
    PublicName(
        "apgar", Message("the Apgar score"), 0, 10,
        _SCORE | {"1", "5", "10", "min", "minute", "minutes"},
    ),
    PublicName(
        "triage,esi,emergency_severity_index,manchester_triage",
        Message("five levels of triage"), 1, 5,
        PERSON_WORDS | {"level", "class", "category"},
    ),
    PublicName(
        "nps,net_promoter", Message("answers from 0 to 10 of the Net Promoter Score"), 0, 10,
        frozenset("answer,rating,response".split(",")) | PERSON_WORDS,
    ),
    PublicName("blood_group,blood_type,blutgruppe", Message("ABO and Rh blood groups"),
               beside=PERSON_WORDS | {"abo"}, labels="blood_groups"),
)  # fmt: skip

SHARES = (
    PublicName(
        "percent,percentage,pct,perc,prozent,prozentsatz,anteil",
        Message("a share of the whole, in percent or as a fraction"), 0, 100, ANY_WORDS, BOTH,
    ),
    PublicName("decile,dezil", Message("tenths in order"), 1, 10, ANY_WORDS),
    PublicName("quintile,quintil", Message("fifths in order"), 1, 5, ANY_WORDS),
    PublicName("quartile,quartil", Message("fourths in order"), 1, 4, ANY_WORDS),
)  # fmt: skip

PLACES = (
    PublicName(
        "latitude,lat,breitengrad", Message("degrees of latitude"), -90, 90, _PLACE, REAL
    ),
    PublicName(
        "longitude,lon,lng,laengengrad", Message("degrees of longitude"), -180, 180, _PLACE, REAL
    ),
    PublicName(
        "country_iso_2,country_alpha_2,iso_2_country,country_code_2,country_code_alpha_2",
        Message("ISO 3166-1 country codes of two letters"), beside=_CODES | _COUNTRY,
        labels="countries_2",
    ),
    PublicName(
        "country_iso_3,country_alpha_3,iso_3_country,country_code_3,country_code_alpha_3",
        Message("ISO 3166-1 country codes of three letters"), beside=_CODES | _COUNTRY,
        labels="countries_3",
    ),
    PublicName(
        "country_code,country_iso,iso_country,laendercode,landescode,laenderkuerzel",
        Message("ISO 3166-1 country codes of two and of three letters"), beside=_CODES | _COUNTRY,
        labels="countries_codes",
    ),
    PublicName(
        "country,geburtsland,herkunftsland,wohnland",
        Message("ISO 3166-1 countries: codes and names in English and German"),
        beside=_CODES | _COUNTRY, labels="countries",
    ),
    PublicName(
        "us_state,state_us,usa_state,state_usa",
        Message("states and territories of the USA: postal codes and names"),
        beside=_CODES - {"iso", "1", "639", "3166", "4217"}, labels="us_states",
    ),
    PublicName(
        "bundesland,bundeslaender", Message("Länder of Germany and Austria: codes and names"),
        beside=_CODES | frozenset("wohnsitz,wohn,kuerzel".split(",")), labels="laender",
    ),
    PublicName(
        "currency,waehrung,currency_code,waehrungscode",
        Message("ISO 4217 currency codes, former currencies too"), beside=_CODES,
        labels="currencies",
    ),
    PublicName(
        "language,sprache,muttersprache,native_language,first_language,mother_tongue",
        Message("ISO 639 languages: codes and names in English and German"),
        beside=_CODES | PERSON_WORDS | frozenset("spoken,preferred,primary".split(",")),
        labels="languages",
    ),
    PublicName(
        "icd_chapter,icd_10_chapter,icd_kapitel,icd_10_kapitel",
        Message("the chapters of ICD-10, I to XXII"), 1, 22, frozenset("diagnosis,main".split(",")),
        labels="icd_chapters",
    ),
)  # fmt: skip

PUBLIC_NAMES = (*TIMES, *PEOPLE, *SHARES, *PLACES)
