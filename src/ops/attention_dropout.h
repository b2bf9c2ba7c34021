// Which of attention's probabilities are dropped: a function of sample, layer, head, query and key in the whole
// sequence. Each has 16 random bits; a call of the generator serves two queries, eight apart, and twice two keys, eight
// apart too: what one lane of a warp holds of 16 x 16 scores on matrix units.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/attention.h"

namespace tera::ops {

struct AttentionDropout {
    DropoutSite site;
    AttentionSpec::Whole whole;
    std::int64_t pairs, fours;  ///< of the queries and of the keys of the whole, each rounded up to sixteen
    std::uint32_t threshold;    ///< a probability is dropped if its number, below 65536, is below this

    explicit AttentionDropout(const AttentionSpec& s)
        : site(s.site),
          whole(s.whole),
          pairs(((whole.length ? whole.length : s.Sq) + 15) / 16 * 8),
          fours(((whole.length ? whole.length : s.Sk) + 15) / 16 * 4),
          threshold(static_cast<std::uint32_t>(std::min(std::round(s.dropout * 65536), 65535.0))) {}

    /// On what is kept: 1/(1-p) for the p that the threshold means, so that the mean stays exactly what it was.
    TERA_HOST_DEVICE double factor() const { return 65536.0 / (65536 - threshold); }

    /// Which pair a query at this place of the whole belongs to, and which four a key.
    TERA_HOST_DEVICE static std::int64_t pair(std::int64_t q) { return q / 16 * 8 + q % 8; }
    TERA_HOST_DEVICE static std::int64_t four(std::int64_t k) { return k / 16 * 4 + k % 8 / 2; }

    /// Query q's calls are numbered from here on, one for each four keys.
    TERA_HOST_DEVICE std::uint64_t first_call(std::int64_t h, std::int64_t q) const {
        return static_cast<std::uint64_t>(((whole.head + h) * pairs + pair(whole.query.at(q))) * fours);
    }
    /// The call for a query whose calls begin with `first` and four keys.
    TERA_HOST_DEVICE U32x4 words(std::int64_t sample, std::uint64_t first, std::int64_t four) const {
        return dropout_words(site, sample, first + static_cast<std::uint64_t>(four));
    }
    /// Their own number in it: a word for each query and two neighbouring keys, the lower half first.
    TERA_HOST_DEVICE std::uint32_t number(const U32x4& words, std::int64_t q, std::int64_t k) const {
        const std::int64_t query = whole.query.at(q), key = whole.key.at(k);
        return words.v[query % 16 / 8 * 2 + key % 16 / 8] >> (key % 2 * 16) & 0xffffu;
    }
};

}  // namespace tera::ops
