#include "data/indexed_dataset.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::string_view magic{"MMIDIDX\0\0", 9};

std::string damaged(const std::string& name) { return cat(name, ": damaged or incomplete index: "); }

/// Widens `count` stored values to int32. Returns the position of the first that is no int32, or count.
template <class T>
std::int64_t widen(const std::byte* in, std::int64_t count, std::int32_t* out) {
    for (std::int64_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, in + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
        if constexpr (std::is_floating_point_v<T>) {
            if (!(value >= -2147483648.0 && value <= 2147483647.0)) return i;
            if (static_cast<T>(static_cast<std::int32_t>(value)) != value) return i;
        } else if constexpr (sizeof(T) == 8) {
            if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
                return i;
        }
        out[i] = static_cast<std::int32_t>(value);
    }
    return count;
}

std::int64_t widen(TokenType type, std::int64_t token_size, const std::byte* in, std::int64_t count,
                   std::int32_t* out) {
    switch (type) {
        case TokenType::u8:
            return widen<std::uint8_t>(in, count, out);
        case TokenType::i8:
            return widen<std::int8_t>(in, count, out);
        case TokenType::i16:
            return widen<std::int16_t>(in, count, out);
        case TokenType::i32:
            return widen<std::int32_t>(in, count, out);
        case TokenType::i64:
            return widen<std::int64_t>(in, count, out);
        case TokenType::f64:
            return widen<double>(in, count, out);
        case TokenType::f32:
            return token_size == 8 ? widen<double>(in, count, out) : widen<float>(in, count, out);
        case TokenType::u16:
            return widen<std::uint16_t>(in, count, out);
    }
    return 0;
}

}  // namespace

std::int64_t item_size(TokenType type) {
    switch (type) {
        case TokenType::u8:
        case TokenType::i8:
            return 1;
        case TokenType::i16:
        case TokenType::u16:
            return 2;
        case TokenType::i32:
        case TokenType::f32:
            return 4;
        case TokenType::i64:
        case TokenType::f64:
            return 8;
    }
    return 0;
}

const char* type_name(TokenType type) {
    switch (type) {
        case TokenType::u8:
            return "uint8";
        case TokenType::i8:
            return "int8";
        case TokenType::i16:
            return "int16";
        case TokenType::i32:
            return "int32";
        case TokenType::i64:
            return "int64";
        case TokenType::f64:
            return "float64";
        case TokenType::f32:
            return "float32";
        case TokenType::u16:
            return "uint16";
    }
    return "";
}

TokenType token_type_for(std::int64_t vocab_size) { return vocab_size < 65500 ? TokenType::u16 : TokenType::i32; }

SequenceIndex SequenceIndex::parse(std::span<const std::byte> bytes, const std::string& name) {
    const std::byte* const base = bytes.data();
    if (bytes.size() < magic.size() || std::memcmp(base, magic.data(), magic.size()) != 0)
        usage_error(name, ": not a Megatron index file (it does not begin with MMIDIDX); write it with preprocess");
    if (bytes.size() < static_cast<std::size_t>(header_size))
        usage_error(damaged(name), bytes.size(), " bytes are less than its header");
    if (const auto version = load<std::uint64_t>(base + 9); version != 1)
        usage_error(name, ": index version ", version, " is not supported, only 1");
    const auto code = static_cast<std::uint8_t>(base[17]);
    if (code < 1 || code > 8) usage_error(damaged(name), "element type code ", int(code), " is none of 1 to 8");

    const auto body = static_cast<std::uint64_t>(bytes.size() - static_cast<std::size_t>(header_size));
    const auto sequences = load<std::uint64_t>(base + 18);
    const auto document_indices = load<std::uint64_t>(base + 26);
    if (sequences > body / 12 || document_indices > (body - sequences * 12) / 8)
        usage_error(damaged(name), "its header promises ", sequences, " sequences and ", document_indices,
                    " document indices, more than its ", bytes.size(), " bytes hold; was it cut short?");
    const std::uint64_t needed = sequences * 12 + document_indices * 8;
    if (body != needed && body != needed + sequences)
        usage_error(damaged(name), "it is ", bytes.size(), " bytes long where its header promises ",
                    needed + static_cast<std::uint64_t>(header_size));

    SequenceIndex index;
    index.type_ = static_cast<TokenType>(code);
    index.token_size_ = item_size(index.type_);
    index.sequences_ = static_cast<std::int64_t>(sequences);
    index.document_indices_ = static_cast<std::int64_t>(document_indices);
    index.lengths_ = base + header_size;
    index.offsets_ = index.lengths_ + 4 * sequences;
    index.documents_ = index.offsets_ + 8 * sequences;
    if (sequences > 0 && body == needed + sequences) index.modes_ = index.documents_ + 8 * document_indices;
    index.check_sequences(name);
    index.check_documents(name);
    return index;
}

void SequenceIndex::check_sequences(const std::string& name) {
    if (type_ == TokenType::f32) {
        std::int64_t i = 0;
        while (i + 1 < sequences_ && length(i) == 0) ++i;
        if (i + 1 < sequences_ && offset(i + 1) == 8 * std::int64_t{length(i)}) token_size_ = 8;  // offset(i) is 0
    }
    std::int64_t position = 0;
    for (std::int64_t i = 0; i < sequences_; ++i) {
        const std::int64_t tokens = length(i);
        if (tokens < 0) usage_error(damaged(name), "sequence ", i, " has length ", tokens);
        if (offset(i) != position)
            usage_error(damaged(name), "sequence ", i, " begins at byte ", offset(i),
                        " of the .bin where the lengths of ", "those before it give ", position);
        position += tokens * token_size_;  // fits: below 2^31 · 8 · (file size / 12)
    }
    tokens_ = position / token_size_;
}

void SequenceIndex::check_documents(const std::string& name) const {
    if (document_indices_ == 0) usage_error(damaged(name), "its document index is empty");
    if (document_index(0) != 0) usage_error(damaged(name), "its document index begins with ", document_index(0));
    std::int64_t previous = 0;
    for (std::int64_t i = 1; i < document_indices_; ++i) {
        const std::int64_t here = document_index(i);
        if (here < previous || here > sequences_)
            usage_error(damaged(name), "document index ", i, " is ", here, ", after ", previous, ", with ", sequences_,
                        " sequences in all");
        previous = here;
    }
    if (previous != sequences_)
        usage_error(damaged(name), "its last document ends at sequence ", previous, " of ", sequences_);
}

IndexedDataset::IndexedDataset(std::string prefix, bool map_bin) : prefix_(std::move(prefix)), map_bin_(map_bin) {
    idx_ = MappedFile(idx_path());
    index_ = SequenceIndex::parse(idx_.bytes(), idx_path());
    const std::int64_t available = regular_file_size(bin_path());
    if (available < index_.bin_size())
        usage_error(bin_path(), ": ", available, " bytes, but ", idx_path(), " describes ", index_.bin_size(), " (",
                    index_.tokens(), " ", type_name(index_.type()),
                    " tokens); the .bin is cut short or belongs to another .idx");
}

IndexedDataset::~IndexedDataset() {
    if (const int fd = bin_fd_.load(); fd >= 0) ::close(fd);
}

std::span<const std::byte> IndexedDataset::bin() const {
    const auto size = static_cast<std::size_t>(index_.bin_size());
    if (size == 0) return {};
    if (const std::byte* data = bin_data_.load(std::memory_order_acquire)) return {data, size};
    const std::lock_guard lock(open_mutex_);
    if (bin_data_.load(std::memory_order_relaxed) == nullptr) {
        MappedFile file(bin_path(), MappedFile::Access::random);
        if (file.size() < size) usage_error(bin_path(), ": has become shorter since it was opened");
        bin_ = std::move(file);
        bin_data_.store(bin_.data(), std::memory_order_release);
    }
    return {bin_.data(), size};
}

void IndexedDataset::read_bin(std::int64_t position, std::int64_t size, std::byte* out) const {
    int fd = bin_fd_.load(std::memory_order_acquire);
    if (fd < 0) {
        const std::lock_guard lock(open_mutex_);
        fd = bin_fd_.load(std::memory_order_relaxed);
        if (fd < 0) {
            fd = ::open(bin_path().c_str(), O_RDONLY | O_CLOEXEC);
            if (fd < 0) usage_error("cannot open ", bin_path(), ": ", std::strerror(errno));
            bin_fd_.store(fd, std::memory_order_release);
        }
    }
    while (size > 0) {
        const ::ssize_t got = ::pread(fd, out, static_cast<std::size_t>(size), position);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            usage_error("cannot read ", bin_path(), " at byte ", position, ": ",
                        got == 0 ? "the file has become shorter" : std::strerror(errno));
        position += got;
        size -= got;
        out += got;
    }
}

void IndexedDataset::get(std::int64_t i, std::int64_t offset, std::int64_t count, std::int32_t* out) const {
    TERA_CHECK(i >= 0 && i < size() && offset >= 0 && count >= 0 && offset + count <= sequence_length(i), prefix_,
               ": sequence ", i, ", tokens ", offset, " + ", count);
    if (count == 0) return;
    const std::int64_t token_size = index_.token_size();
    const std::int64_t position = index_.offset(i) + offset * token_size;
    std::vector<std::byte> buffer;
    const std::byte* stored = nullptr;
    if (map_bin_) {
        stored = bin().data() + position;
        bin_.will_need(static_cast<std::size_t>(position), static_cast<std::size_t>(count * token_size));
    } else {
        buffer.resize(static_cast<std::size_t>(count * token_size));
        read_bin(position, count * token_size, buffer.data());
        stored = buffer.data();
    }
    if (const std::int64_t good = widen(index_.type(), token_size, stored, count, out); good < count)
        usage_error(bin_path(), ": sequence ", i, ", token ", offset + good, ": the ", type_name(index_.type()),
                    " value there is no token id");
}

}  // namespace tera
