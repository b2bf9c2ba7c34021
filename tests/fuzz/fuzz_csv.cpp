// CSV files, as inputs of preprocess. Bad records are passed over as preprocess does where it is told to.
#include "fuzz/fuzz.h"
#include "io/csv_reader.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    return {"a,b\n1,2\n\"x, \"\"y\"\"\n\",3\r\n", "a\r1\r\r\"\"\r2", "\xEF\xBB\xBF\"a\"\n\"open",
            "b,a\n1\n\"2\"x,3\n4,5"};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    const fuzz::MemoryFile file(data, size);
    fuzz::attempt([&] {
        CsvReader reader(file.path(), {"a"});
        TextColumns part;
        for (bool more = true; more;) {
            const std::int64_t before = reader.place().position;
            try {
                more = reader.next(part, 64);
            } catch (const UsageError&) {
                reader.skip_record();
            }
            if (more && reader.place().position <= before) __builtin_trap();  // it would never end
        }
    });
    return 0;
}
