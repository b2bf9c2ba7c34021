// Expects that a call throws a UsageError of one line that names what it should.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "core/error.h"

namespace tera {

template <class F>
void expect_usage_error(const F& call, std::initializer_list<const char*> parts) {
    try {
        call();
        ADD_FAILURE() << "no UsageError";
    } catch (const UsageError& e) {
        const std::string text = e.what();
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
        for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " not in: " << text;
    } catch (const std::exception& e) {
        ADD_FAILURE() << "not a UsageError: " << e.what();
    }
}

}  // namespace tera
