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
  const auto value = parse_json(text);
  const auto* object = value ? value->if_object() : nullptr;
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
  const auto* details = object_in(*object, "details");
  if (end.reason != "NonZeroExitCode" || details == nullptr) return end;
  each_object(*details, "causes", [&](const json::object& cause) {
    if (text_in(cause, "reason") != "ExitCode") return;
    const auto code = hypertune::detail::parse_number<int>(text_in(cause, "message"));
    end.exited = code.has_value();
    end.code = code.value_or(end.code);
  });
  return end;
}

}  // namespace hypertune::inline v0::k8s::detail
