#include "token/sentence_abbreviations.h"

#include <array>

#include "core/error.h"

namespace tera {

namespace {

/// Words separated by blanks.
struct Source {
    const char *name, *never_end, *before_number, *may_end, *starters;
    bool has_ordinals;
};

constexpr const char* common_number = "no nr nos p pp vol fig figs art cap ch sec eq tab";

constexpr std::array sources = {
    Source{
        "english",
        "mr mrs ms mx dr prof rev hon gen col maj capt cmdr cpl sgt lt adm gov sen rep pres supt messrs mme mlle st "
        "ste "
        "mt ft vs v cf al e.g i.e viz approx ca resp incl excl dept est univ assn bros ave blvd rd op cit ibid ed eds "
        "trans rev tel ext",
        "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun",
        "etc inc ltd co corp llc jr sr esq a.m p.m b.c a.d ph.d m.d b.a m.a b.sc m.sc",
        "the a an he she it we they i you this that these those there in on at but and or so if when while after "
        "before however then for from with by as to his her its our their my your what who why how no yes",
        false},
    Source{
        "german",
        "hr hrn fr dr prof dipl ing st str bzw ca evtl ggf inkl exkl vgl z.b d.h u.a z.t i.d.r u.u o.\u00e4 m.e i.a "
        "s.o "
        "s.u sog bspw bzgl einschl geb gest jh jhdt mind max min mio mrd tsd abs abt allg kath ev hl vs tel",
        "jan feb m\u00e4r mrz apr jun jul aug sep sept okt nov dez nr kap abb s", "usw etc u.s.w co a.d n.chr v.chr",
        "der die das ein eine er sie es wir ihr ich in im am auf aber und wenn als nach vor doch dann f\u00fcr mit von",
        true},
    Source{
        "french",
        "m mm mme mmes mlle mlles me dr pr prof st ste mgr vve cf ex env av bd boul c.-\u00e0-d p.ex c.\u00e0.d vs tel",
        "janv f\u00e9vr avr juil sept oct nov d\u00e9c n no fig chap vol p pp", "etc cie s.a a.m p.m j.-c",
        "le la les un une il elle ils elles nous vous je ce cette ces dans mais et si quand apr\u00e8s avant pour avec",
        false},
    Source{"italian",
           "sig sigg sig.ra sig.na dr dott dott.ssa prof prof.ssa ing avv on mons s ss cfr vs es p.es ca tel",
           "gen feb mar apr mag giu lug ago set ott nov dic n nn cap vol fig", "ecc etc s.p.a s.r.l a.c d.c",
           "il lo la i gli le un una egli ella noi voi io ma e se quando dopo prima per con nel nella", false},
    Source{
        "spanish",
        "sr sra srta sres dr dra prof profa lic ing arq gral cnel cap d d\u00f1a ud uds vd vds p.ej ej aprox av avda c "
        "cf vs tel",
        "ene feb mar abr may jun jul ago sep sept oct nov dic n n\u00fam cap vol fig",
        "etc s.a s.l c\u00eda ee.uu a.c d.c a.m p.m",
        "el la los las un una \u00e9l ella ellos nosotros yo pero y si cuando despu\u00e9s antes para con en por",
        false},
    Source{"portuguese", "sr sra srta dr dra prof profa eng exmo exma av r p.ex ex aprox cf vs tel",
           "jan fev mar abr mai jun jul ago set out nov dez n cap vol fig", "etc ltda cia s.a a.c d.c",
           "o a os as um uma ele ela eles n\u00f3s eu mas e se quando depois antes para com em por", false},
    Source{"dutch",
           "dhr mevr mr mw dr drs ir ing prof ds st bijv bv d.w.z o.a m.a.w t.o.v m.b.t i.v.m ca vgl nl resp vs tel",
           "jan feb mrt apr jun jul aug sept okt nov dec nr blz fig", "enz etc n.v b.v e.a n.chr v.chr",
           "de het een hij zij wij ik maar en als toen na voor met in op van dit dat", false},
    Source{"danish", "hr fr dr prof bl.a f.eks dvs ca jf vedr inkl ekskl s\u00e5k pga mht ift vs tlf",
           "jan feb mar apr jun jul aug sep sept okt nov dec nr s kap", "osv mv etc m.m m.fl a/s",
           "den det de en et han hun vi jeg men og n\u00e5r da efter f\u00f8r i p\u00e5", true},
    Source{"swedish", "hr fr dr prof bl.a t.ex d.v.s dvs ca jfr f\u00f6r s.k p.g.a m.a.o inkl exkl resp vs tel",
           "jan feb mars apr jun jul aug sep sept okt nov dec nr s kap", "osv m.m m.fl etc f.kr e.kr",
           "den det de en ett han hon vi jag men och n\u00e4r d\u00e5 efter i p\u00e5", false},
    Source{"norwegian", "hr fr dr prof bl.a f.eks dvs ca jf vedr inkl ekskl pga mht ift vs tlf",
           "jan feb mar apr jun jul aug sep sept okt nov des nr s kap", "osv mv etc m.m m.fl a/s",
           "den det de en et ei han hun vi jeg men og n\u00e5r da etter f\u00f8r i p\u00e5", true},
    Source{"finnish", "hra rva nti tri dos prof esim mm ts eli ns nk v n ym vrt ks puh", "nro s", "jne etc ym yms", "",
           true},
    Source{"czech", "p pan\u00ed dr prof doc ing mgr bc mudr judr phdr rndr nap\u0159 tj tzn tzv resp cca \u00fal tel",
           "\u010d str", "atd apod aj etc a.s s.r.o", "", true},
    Source{"polish", "p pan dr prof doc in\u017c mgr np tj tzn tzw m.in ok ul al im \u015bw ks r w tel", "nr str rys",
           "itd itp etc sp", "", true},
    Source{"slovene", "g ga gdc dr prof doc mag npr tj t.i oz sv ul tel", "\u0161t str", "itd ipd itn etc d.o.o", "",
           true},
    Source{"estonian", "hr pr dr prof nt s.t st u tel", "nr lk", "jne jms etc", "", true},
    Source{"turkish", "bay bn dr do\u00e7 prof av m\u00fch \u00f6rn bkz yy cad sok tel", "no s",
           "vb vs vd a.\u015f ltd \u015fti", "", true},
    Source{"greek",
           "\u03ba \u03ba\u03ba \u03b4\u03c1 \u03ba\u03b1\u03b8 \u03c0.\u03c7 \u03b4\u03b7\u03bb \u03c3\u03b5\u03bb",
           "\u03b1\u03c1", "\u03ba.\u03bb\u03c0 \u03ba\u03bb\u03c0 \u03ba.\u03ac \u03c0.\u03c7 \u03bc.\u03c7", "",
           false},
    Source{
        "russian",
        "\u0433 \u0433\u0433 \u0433-\u043d \u0433-\u0436\u0430 \u0434\u0440 \u043f\u0440\u043e\u0444 "
        "\u0434\u043e\u0446 \u0430\u043a\u0430\u0434 "
        "\u0438\u043c \u0443\u043b \u043f\u0440 \u0442.\u0435 \u0442.\u043a \u0441\u043c \u0441\u0440 "
        "\u043d\u0430\u043f\u0440 \u0442\u0435\u043b",
        "\u0440\u0438\u0441 \u0442\u0430\u0431\u043b \u0441\u0442\u0440 \u0441 \u0441\u0442 \u043f \u0442 \u0433\u043b",
        "\u0442.\u0434 \u0442.\u043f \u0434\u0440 \u0442\u044b\u0441 \u043c\u043b\u043d \u043c\u043b\u0440\u0434 "
        "\u0440\u0443\u0431 \u043a\u043e\u043f \u043d.\u044d",
        "", false},
};

std::unordered_set<std::string_view> words_of(std::string_view text) {
    std::unordered_set<std::string_view> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        if (end > 0) words.insert(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

std::vector<Abbreviations> all_abbreviations() {
    std::vector<Abbreviations> all;
    for (const Source& source : sources) {
        Abbreviations one{words_of(source.never_end), words_of(source.before_number), words_of(source.may_end),
                          words_of(source.starters), source.has_ordinals};
        for (const std::string_view word : words_of(common_number))
            if (!one.never_end.count(word)) one.before_number.insert(word);
        all.push_back(std::move(one));
    }
    return all;
}

}  // namespace

std::vector<std::string> sentence_languages() {
    std::vector<std::string> names;
    for (const Source& source : sources) names.emplace_back(source.name);
    return names;
}

const Abbreviations& abbreviations_of(const std::string& language) {
    static const std::vector<Abbreviations> all = all_abbreviations();
    std::string names;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (language == sources[i].name) return all[i];
        names += std::string(i > 0 ? ", " : "") + sources[i].name;
    }
    usage_error("--lang ", language, " is unknown; there are ", names);
}

}  // namespace tera
