#include "ops/document_list.h"

#include <algorithm>

namespace tera::ops {

DocumentList list_documents(const std::int32_t* doc_start, std::int64_t S, std::int64_t B,
                            std::vector<std::int32_t>& rows) {
    rows.clear();
    DocumentList list;
    for (std::int64_t b = 0; b < B; ++b)
        for (std::int64_t s = 0, first = 0; s < S; ++s) {
            const std::int64_t start = doc_start[s * B + b];
            if (start == s) {
                if (++list.count > most_documents(S, B)) return {};
                rows.push_back(static_cast<std::int32_t>(s * B + b));
                rows.push_back(0);
                first = s;
            } else if (start != first) {
                return {};
            }
            list.longest = std::max<std::int64_t>(list.longest, ++rows.back());
        }
    list.rows = rows.data();
    return list;
}

}  // namespace tera::ops
