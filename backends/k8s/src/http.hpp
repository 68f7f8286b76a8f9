// What the client has from the part net.
#pragma once

#include "net/base64.hpp"
#include "net/request_text.hpp"
#include "net/response_reader.hpp"
#include "net/server_dialer.hpp"
#include "net/url.hpp"
#include "net/wire.hpp"

namespace hypertune::inline v0::k8s::detail {

using namespace net;

}  // namespace hypertune::inline v0::k8s::detail
