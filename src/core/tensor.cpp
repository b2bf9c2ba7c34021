#include "core/tensor.h"

#include <ostream>

namespace tera {

std::string Shape::str() const { return cat(*this); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '[';
    for (int i = 0; i < shape.ndim; ++i) out << (i ? "," : "") << shape[i];
    return out << ']';
}

}  // namespace tera
