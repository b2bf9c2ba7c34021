// Which of attention's probabilities are dropped: a function of sample, layer, head, query and key in the whole
// sequence. Each has 16 random bits; a call of the generator serves two neighbouring queries and four neighbouring
// keys, what one lane of a warp holds of two products on matrix units.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/attention.h"

namespace tera::ops {

struct AttentionDropout {
    DropoutSite site;
    AttentionSpec::Whole whole;
    std::int64_t pairs, fours;  ///< of the queries and of the keys of the whole
    std::uint32_t threshold;    ///< a probability is dropped if its number, below 65536, is below this

    explicit AttentionDropout(const AttentionSpec& s)
        : site(s.site),
          whole(s.whole),
          pairs(((whole.length ? whole.length : s.Sq) + 1) / 2),
          fours(((whole.length ? whole.length : s.Sk) + 3) / 4),
          threshold(static_cast<std::uint32_t>(std::min(std::round(s.dropout * 65536), 65535.0))) {}

    /// On what is kept: 1/(1-p) for the p that the threshold means, so that the mean stays exactly what it was.
    TERA_HOST_DEVICE double factor() const { return 65536.0 / (65536 - threshold); }

    /// Query q's calls are numbered from here on, one for each four keys.
    TERA_HOST_DEVICE std::uint64_t first_call(std::int64_t h, std::int64_t q) const {
        return static_cast<std::uint64_t>(((whole.head + h) * pairs + whole.query.at(q) / 2) * fours);
    }
    /// The call for query q and key k.
    TERA_HOST_DEVICE U32x4 words(std::int64_t sample, std::uint64_t first, std::int64_t k) const {
        return dropout_words(site, sample, first + static_cast<std::uint64_t>(whole.key.at(k) / 4));
    }
    /// Their own number in it: the first query's four in two words, the lower half first, then the second's.
    TERA_HOST_DEVICE std::uint32_t number(const U32x4& words, std::int64_t q, std::int64_t k) const {
        const std::int64_t at = whole.query.at(q) % 2 * 4 + whole.key.at(k) % 4;
        return words.v[at / 2] >> (at % 2 * 16) & 0xffffu;
    }
};

}  // namespace tera::ops
