// Tensor: a view (pointer, dtype, device, shape) on contiguous row-major memory that somebody else owns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/dtype.h"

namespace tera {

enum class Device : std::uint8_t { cpu, cuda };

struct Shape {
    static constexpr int max_ndim = 4;
    std::array<std::int64_t, max_ndim> dim{};
    int ndim = 0;

    Shape() = default;
    Shape(std::initializer_list<std::int64_t> dims) {
        TERA_CHECK(dims.size() <= max_ndim, dims.size(), " dimensions");
        for (auto d : dims) dim[static_cast<std::size_t>(ndim++)] = d;
    }
    std::int64_t operator[](int i) const { return dim[static_cast<std::size_t>(i)]; }
    std::int64_t& operator[](int i) { return dim[static_cast<std::size_t>(i)]; }
    std::int64_t numel() const {
        std::int64_t n = 1;
        for (int i = 0; i < ndim; ++i) n *= dim[static_cast<std::size_t>(i)];
        return n;
    }
    bool operator==(const Shape& o) const = default;
    std::string str() const;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

template <class Byte>
struct TensorView {
    Byte* data = nullptr;
    DType dtype = DType::f32;
    Device device = Device::cpu;
    Shape shape;

    std::int64_t numel() const { return shape.numel(); }
    std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype); }
    explicit operator bool() const { return data != nullptr; }
    std::int64_t rows() const { return shape.ndim == 0 ? 1 : numel() / cols(); }
    std::int64_t cols() const { return shape.ndim == 0 ? 1 : shape[shape.ndim - 1]; }

    template <class T>
    auto ptr() const {
        TERA_CHECK(dtype == dtype_of<T>, "tensor is ", name_of(dtype), ", wanted ", name_of(dtype_of<T>));
        if constexpr (std::is_const_v<Byte>)
            return reinterpret_cast<const T*>(data);
        else
            return reinterpret_cast<T*>(data);
    }
    /// Rows [begin, begin + count) of the leading dimension.
    TensorView slice(std::int64_t begin, std::int64_t count) const {
        TERA_CHECK(shape.ndim > 0 && begin >= 0 && begin + count <= shape[0], "slice ", begin, "+", count, " of ",
                   shape.str());
        TensorView view = *this;
        std::int64_t row = shape[0] ? numel() / shape[0] : 0;
        view.data = data + static_cast<std::size_t>(begin * row) * size_of(dtype);
        view.shape[0] = count;
        return view;
    }
    TensorView reshape(Shape to) const {
        TERA_CHECK(to.numel() == numel(), "reshape ", shape.str(), " to ", to.str());
        TensorView view = *this;
        view.shape = to;
        return view;
    }
};

struct Tensor : TensorView<std::byte> {
    Tensor() = default;
    Tensor(const TensorView<std::byte>& v) : TensorView(v) {}
    Tensor(std::byte* d, DType t, Device where, Shape s) : TensorView{d, t, where, s} {}
};

struct ConstTensor : TensorView<const std::byte> {
    ConstTensor() = default;
    ConstTensor(const TensorView<const std::byte>& v) : TensorView(v) {}
    ConstTensor(const Tensor& t) : TensorView{t.data, t.dtype, t.device, t.shape} {}
    ConstTensor(const TensorView<std::byte>& t) : TensorView{t.data, t.dtype, t.device, t.shape} {}
};

/// A tensor over memory of a known C++ type.
template <class T>
Tensor tensor_over(T* data, Shape shape) {
    return Tensor(reinterpret_cast<std::byte*>(data), dtype_of<T>, Device::cpu, shape);
}
template <class T>
ConstTensor tensor_over(const T* data, Shape shape) {
    return ConstTensor(
        TensorView<const std::byte>{reinterpret_cast<const std::byte*>(data), dtype_of<T>, Device::cpu, shape});
}

}  // namespace tera
