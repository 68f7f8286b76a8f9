#include "script.hpp"

#include "quickjs.hpp"

#include <hypertune/error.hpp>

#include <memory>
#include <string>
#include <utility>

namespace hypertune::inline v0::plot {

namespace {

constexpr std::size_t most_memory = std::size_t{1} << 30U, most_stack = std::size_t{4} << 20U;

struct RuntimeEnd {
  void operator()(JSRuntime* runtime) const { JS_FreeRuntime(runtime); }
};
struct ContextEnd {
  void operator()(JSContext* context) const { JS_FreeContext(context); }
};

// A value of the engine, freed by the destructor.
class ScopedValue {
 public:
  ScopedValue(JSContext* context, JSValue value) : context_(context), value_(value) {}
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;
  ~ScopedValue() { JS_FreeValue(context_, value_); }
  JSValue get() const { return value_; }
  bool failed() const { return JS_IsException(value_); }
  ScopedValue property(const char* name) const { return {context_, JS_GetPropertyStr(context_, value_, name)}; }
  std::string text() const {
    std::size_t size = 0;
    const char* bytes = JS_ToCStringLen(context_, &size, value_);
    if (bytes == nullptr) return "?";
    std::string text(bytes, size);
    JS_FreeCString(context_, bytes);
    return text;
  }

 private:
  JSContext* context_;
  JSValue value_;
};

}  // namespace

class Script::Engine {
 public:
  Engine(Modules modules, Ask ask, std::chrono::seconds patience)
      : modules_(std::move(modules)),
        ask_(std::move(ask)),
        end_(std::chrono::steady_clock::now() + patience),
        runtime_(JS_NewRuntime()) {
    if (runtime_ != nullptr) context_.reset(JS_NewContext(runtime_.get()));
    if (context_ == nullptr) fail(Errc::io, "there is no memory for the engine that draws charts");
    JS_SetMemoryLimit(runtime_.get(), most_memory);
    JS_SetMaxStackSize(runtime_.get(), most_stack);
    JS_SetInterruptHandler(
        runtime_.get(),
        [](JSRuntime*, void* self) {
          return std::chrono::steady_clock::now() > static_cast<Engine*>(self)->end_ ? 1 : 0;
        },
        this);
    JS_SetModuleLoaderFunc(runtime_.get(), nullptr, &Engine::load, this);
    JS_SetContextOpaque(context_.get(), this);
    const ScopedValue global(context_.get(), JS_GetGlobalObject(context_.get()));
    JS_SetPropertyStr(context_.get(), global.get(), "ask",
                      JS_NewCFunction(context_.get(), &Engine::ask_callback, "ask", 1));
  }

  void run(const std::string& source, const char* name, int how) {
    const ScopedValue value(context_.get(), JS_Eval(context_.get(), source.c_str(), source.size(), name, how));
    if (value.failed()) blame(ScopedValue(context_.get(), JS_GetException(context_.get())), name);
    for (JSContext* of = nullptr; JS_ExecutePendingJob(runtime_.get(), &of) > 0;) {}
    if (!JS_IsPromise(value.get())) return;
    if (JS_PromiseState(context_.get(), value.get()) == JS_PROMISE_FULFILLED) return;
    blame(ScopedValue(context_.get(), JS_PromiseResult(context_.get(), value.get())), name);
  }

  std::string answer() {
    const ScopedValue global(context_.get(), JS_GetGlobalObject(context_.get()));
    const ScopedValue answer = global.property("answer");
    if (!JS_IsString(answer.get())) fail(Errc::io, "a chart's script has no answer");
    return answer.text();
  }

 private:
  // No exception may pass through the engine, which is C.
  static JSModuleDef* load(JSContext* context, const char* name, void* self) {
    try {
      const auto text =
          static_cast<Engine*>(self)->modules_("/" + std::string(name));  // module names inside have no leading slash
      if (!text) {
        JS_ThrowReferenceError(context, "there is no module '%s'", name);
        return nullptr;
      }
      const JSValue module =
          JS_Eval(context, text->c_str(), text->size(), name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
      if (JS_IsException(module)) return nullptr;
      auto* const made = static_cast<JSModuleDef*>(JS_VALUE_GET_PTR(module));
      JS_FreeValue(context, module);  // the runtime owns it
      return made;
    } catch (...) {
      static_cast<Engine*>(self)->thrown_ = std::current_exception();
      JS_ThrowPlainError(context, "a module cannot be read");
      return nullptr;
    }
  }

  static JSValue ask_callback(JSContext* context, JSValueConst, int count, JSValueConst* arguments) {
    auto* const self = static_cast<Engine*>(JS_GetContextOpaque(context));
    try {
      const ScopedValue question(context, JS_DupValue(context, count > 0 ? arguments[0] : JS_UNDEFINED));
      const std::string answer = self->ask_(question.text());
      return JS_NewStringLen(context, answer.data(), answer.size());
    } catch (...) {
      self->thrown_ = std::current_exception();
      return JS_ThrowPlainError(context, "a question has no answer");
    }
  }

  [[noreturn]] void blame(const ScopedValue& error, const char* name) {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    const std::string what = error.property("message").text();
    if (error.property("name").text() == "Problem") fail(Errc::input, "{}", what);
    if (std::chrono::steady_clock::now() > end_)
      fail(Errc::io, "drawing takes too long: fewer trials take less (--filter)");
    std::string where = error.property("stack").text();
    where = where.substr(0, where.find('\n'));
    fail(Errc::io, "the script '{}' has a fault: {} ({})", name, error.text(), where);
  }

  Modules modules_;
  Ask ask_;
  std::chrono::steady_clock::time_point end_;
  std::exception_ptr thrown_;
  std::unique_ptr<JSRuntime, RuntimeEnd> runtime_;
  std::unique_ptr<JSContext, ContextEnd> context_;
};

Script::Script(Modules modules, Ask ask, std::chrono::seconds patience)
    : engine_(std::make_unique<Engine>(std::move(modules), std::move(ask), patience)) {}
Script::~Script() = default;

void Script::run(const std::string& source, const char* name) { engine_->run(source, name, JS_EVAL_TYPE_GLOBAL); }

std::string Script::call(const std::string& module, const char* name) {
  engine_->run(module, name, JS_EVAL_TYPE_MODULE);
  return engine_->answer();
}

}  // namespace hypertune::inline v0::plot
