// What both tours share: their entry points, values and expectations.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <thrift/protocol/TProtocol.h>

void tour1(std::shared_ptr<apache::thrift::protocol::TProtocol> protocol, const std::string& table);
void tour2(std::shared_ptr<apache::thrift::protocol::TProtocol> protocol, const std::string& table);

// The values of a row by family:qualifier.
using Cells = std::map<std::string, std::string>;

// Ends the tour unless the condition holds.
#define CHECK(...)                                                                                          \
  do {                                                                                                      \
    if (!(__VA_ARGS__)) {                                                                                   \
      throw std::logic_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #__VA_ARGS__);   \
    }                                                                                                       \
  } while (false)

// The exception of kind E that the call must end with.
template <class E, class Call>
E failure(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error;
  }
  throw std::logic_error("a call succeeded that must fail");
}

// A value that is larger than any buffer on the way: a mebibyte of every byte.
inline std::string big() {
  std::string bytes(1 << 20, '\0');
  for (size_t at = 0; at < bytes.size(); at++) {
    bytes[at] = static_cast<char>(at);
  }
  return bytes;
}

// A 64-bit number as HBase stores it.
inline std::string big_endian(uint64_t value) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(value >> shift));
  }
  return bytes;
}

// "scan-" and the number in three digits.
inline std::string scan_key(int number) {
  const std::string digits = std::to_string(number);
  return "scan-" + std::string(3 - digits.size(), '0') + digits;
}
