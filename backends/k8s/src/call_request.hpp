// CallRequest: what a worker says before it is let in, and what is thought of it. No I/O.
#pragma once

#include <hypertune/checkpoint/transfer/secret.hpp>

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/status.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

using CallRequest = boost::beast::http::request<boost::beast::http::empty_body>;

struct CallVerdict {
  boost::beast::http::status status;  ///< switching_protocols: let in
  std::string why;                    ///< for the worker, one line; says nothing to who does not know the token
  std::string worker;                 ///< a sound name, where the token is right
};

/// Looks at the token first, in a time that says nothing of where it differs.
CallVerdict judge_call(const CallRequest& request, const Secret& token);

/// Letters, digits, '.', '_' and '-', at most 253: what needs no care in a path.
bool is_worker_name(std::string_view name);

}  // namespace hypertune::inline v0::k8s
