// Part of hypertune::k8s.
#include "channel_frames.hpp"

#include "status.hpp"

#include <hypertune/detail/parse_number.hpp>

#include <boost/json.hpp>

namespace hypertune::inline v0::k8s::detail {

namespace json = boost::json;

CommandEnd read_command_end(std::string_view text) {
  CommandEnd end;
  end.known = true;
  json::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  const auto* object = error ? nullptr : value.if_object();
  if (object == nullptr) {  // older servers send plain text
    end.message = one_line(text);
    return end;
  }
  end.message = one_line(without_queries(text_in(*object, "message")), 2000);
  end.reason = text_in(*object, "reason");
  if (const auto* code = object->if_contains("code");
      code != nullptr && code->is_int64() && code->get_int64() > 0 && code->get_int64() < 1000)
    end.status = static_cast<int>(code->get_int64());
  if (text_in(*object, "status") == "Success") {
    end.exited = true;
    return end;
  }
  const auto* details = object_in(value, "details");
  const auto* causes = details != nullptr ? details->if_contains("causes") : nullptr;
  if (end.reason != "NonZeroExitCode" || causes == nullptr || !causes->is_array()) return end;
  for (const auto& cause : causes->get_array()) {
    const auto* one = cause.if_object();
    if (one == nullptr || text_in(*one, "reason") != "ExitCode") continue;
    const auto code = hypertune::detail::parse_number<int>(text_in(*one, "message"));
    end.exited = code.has_value();
    end.code = code.value_or(end.code);
  }
  return end;
}

}  // namespace hypertune::inline v0::k8s::detail
