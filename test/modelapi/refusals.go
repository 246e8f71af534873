package modelapi

import (
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Refusal is what an API answers instead of a model's answer: a status with headers and a body.
type Refusal struct {
	Name   string
	Status int
	Header map[string]string
	Body   string
	Failed map[string]string // code and message of a stream that fails, instead of a status (OpenAI)
	Means  run.LimitKind     // empty: the failure is not about the account or the provider's state
}

// Refusals are the refusals that are known of each program's provider.
var Refusals = map[string][]Refusal{
	"claude": {
		anthropicError("too long", 400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ""),
		anthropicError("credit", 400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. "+
			"Please go to Plans & Billing to upgrade or purchase credits.", run.LimitCredit),
		anthropicError("API usage", 400, "invalid_request_error", "You have reached your specified API usage limits. "+
			"You will regain access on 2026-12-01 at 00:00 UTC.", run.LimitPlan),
		anthropicError("organization disabled", 400, "invalid_request_error", "This organization has been disabled.",
			run.LimitLogin),
		anthropicError("key", 401, "authentication_error", "invalid x-api-key", run.LimitLogin),
		anthropicError("token expired", 401, "authentication_error", "OAuth token has expired. Please obtain a new token or "+
			"refresh your existing token.", run.LimitLogin),
		anthropicError("billing", 402, "billing_error", "Your payment method was declined.", run.LimitCredit),
		anthropicError("token revoked", 403, "permission_error", "OAuth token revoked. Please log in again or contact your "+
			"administrator.", run.LimitLogin),
		anthropicError("permission", 403, "permission_error", "Your API key does not have permission to use the specified "+
			"resource.", run.LimitLogin),
		anthropicError("model", 404, "not_found_error", "model: claude-opus-5-5", run.LimitModel),
		anthropicError("time", 408, "timeout_error", "Request timed out.", run.LimitOverload),
		anthropicError("too large", 413, "request_too_large", "Request exceeds the maximum size", ""),
		anthropicError("rate", 429, "rate_limit_error", "This request would exceed your organization's rate limit of 30,000 "+
			"input tokens per minute.", run.LimitRate),
		anthropicError("rate, 7 seconds", 429, "rate_limit_error", "This request would exceed your account's rate limit. "+
			"Please try again later.", run.LimitRate).with("Retry-After", "7"),
		anthropicError("five hours", 429, "rate_limit_error", "This request would exceed your account's rate limit.",
			run.LimitPlan).window("five_hour", "5h"),
		anthropicError("week", 429, "rate_limit_error", "This request would exceed your account's rate limit.",
			run.LimitPlan).window("seven_day", "7d"),
		anthropicError("week of a model", 429, "rate_limit_error", "This request would exceed your account's rate limit.",
			run.LimitPlan).window("seven_day_opus", "7d_opus"),
		anthropicError("extra usage", 429, "rate_limit_error", "This request would exceed your account's rate limit.",
			run.LimitPlan).window("overage", "overage").with("Anthropic-Ratelimit-Unified-Overage-Status", "rejected").
			with("Anthropic-Ratelimit-Unified-Overage-Disabled-Reason", "out_of_credits"),
		anthropicError("spend limit", 429, "rate_limit_error", "spend limit reached · resets Dec 8 · request an increase at "+
			"https://go.corp.example.com/claude-limits", run.LimitPlan),
		anthropicError("service disabled", 429, "rate_limit_error", "This service is disabled for your org", run.LimitCredit).
			with("X-Should-Retry", "false"),
		anthropicError("long context", 429, "rate_limit_error", "Extra usage is required for long context requests.",
			run.LimitCredit),
		anthropicError("internal", 500, "api_error", "Internal server error", run.LimitOverload),
		page("bad gateway", 502, run.LimitOverload),
		page("unavailable", 503, run.LimitOverload),
		page("gateway's time", 504, run.LimitOverload),
		anthropicError("overloaded", 529, "overloaded_error", "Overloaded", run.LimitOverload),
	},
	"codex": {
		openAIError("too long", 400, "invalid_request_error", "context_length_exceeded",
			"Your input exceeds the context window of this model.", ""),
		openAIError("key", 401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-test.",
			run.LimitLogin),
		openAIError("country", 403, "request_forbidden", "unsupported_country_region_territory",
			"Country, region, or territory not supported", run.LimitLogin),
		openAIError("model", 404, "invalid_request_error", "model_not_found",
			"The model `gpt-5.5` does not exist or you do not have access to it.", run.LimitModel),
		openAIError("rate", 429, "requests", "rate_limit_exceeded", "Rate limit reached for gpt-5.5 in organization org-test "+
			"on tokens per min (TPM): Limit 30000, Used 29000, Requested 5100. Please try again in 8.2s.", run.LimitRate),
		openAIError("quota", 429, "insufficient_quota", "insufficient_quota",
			"You exceeded your current quota, please check your plan and billing details.", run.LimitCredit),
		{Name: "plan", Status: 429, Means: run.LimitPlan, Body: marshal(map[string]any{"error": map[string]any{
			"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
			"resets_at": 1796270700, "resets_in_seconds": 378300,
		}})},
		{Name: "plan without usage", Status: 429, Means: run.LimitCredit, Body: marshal(map[string]any{
			"error": map[string]any{"type": "usage_not_included", "message": "Usage is not included in your plan"},
		})},
		openAIError("internal", 500, "server_error", "", "The server had an error while processing your request.",
			run.LimitOverload),
		page("bad gateway", 502, run.LimitOverload),
		openAIError("overloaded", 503, "server_error", "server_is_overloaded", "The server is overloaded.", run.LimitOverload),
		openAIError("slow down", 503, "server_error", "slow_down", "Slow down.", run.LimitRate),
		page("gateway's time", 504, run.LimitOverload),
		openAIFailed("rate in the stream", "rate_limit_exceeded", "Rate limit reached for gpt-5.5 in organization org-test on "+
			"tokens per min (TPM): Limit 30000, Used 29000, Requested 5100. Please try again in 8.2s.", run.LimitRate),
		openAIFailed("quota in the stream", "insufficient_quota", "You exceeded your current quota.", run.LimitCredit),
		openAIFailed("overloaded in the stream", "server_is_overloaded", "Our servers are currently overloaded.",
			run.LimitOverload),
		openAIFailed("slow down in the stream", "slow_down", "Slow down.", run.LimitRate),
		openAIFailed("too long in the stream", "context_length_exceeded", "Your input exceeds the context window.", ""),
	},
	"gemini": {
		geminiError("bad request", 400, "INVALID_ARGUMENT", "Request contains an invalid argument.", ""),
		geminiError("key", 400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", run.LimitLogin),
		geminiError("login", 401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", run.LimitLogin),
		geminiError("permission", 403, "PERMISSION_DENIED", "The caller does not have permission", run.LimitLogin),
		geminiError("model", 404, "NOT_FOUND", "models/gemini-2.5-pro is not found for API version v1beta, or is not "+
			"supported for generateContent.", run.LimitModel),
		geminiError("rate", 429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", run.LimitRate),
		geminiError("rate, 7 seconds", 429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", run.LimitRate,
			map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}),
		geminiError("quota of a day", 429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan "+
			"and billing details.", run.LimitPlan, map[string]any{
			"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{map[string]string{
				"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
				"quotaId":     "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "250",
			}},
		}),
		geminiError("credit", 429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted. Please go to AI Studio to "+
			"manage your project and billing.", run.LimitCredit),
		geminiError("capacity", 429, "RESOURCE_EXHAUSTED", "No capacity available for model gemini-2.5-pro on the server",
			run.LimitOverload, map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
				"reason": "MODEL_CAPACITY_EXHAUSTED", "domain": "cloudcode-pa.googleapis.com"}),
		geminiError("internal", 500, "INTERNAL", "An internal error has occurred.", run.LimitOverload),
		geminiError("overloaded", 503, "UNAVAILABLE", "The model is overloaded. Please try again later.", run.LimitOverload),
		geminiError("deadline", 504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.",
			run.LimitOverload),
	},
}

func (r Refusal) with(name, value string) Refusal {
	header := map[string]string{name: value}
	for n, v := range r.Header {
		header[n] = v
	}
	r.Header = header
	return r
}

// window adds the headers of a limit of a subscription: the name of the window, and its short name in headers.
func (r Refusal) window(claim, short string) Refusal {
	const prefix, reset = "Anthropic-Ratelimit-Unified-", "1796151600" // 2026-12-01T19:00:00Z
	return r.with(prefix+"Status", "rejected").with(prefix+"Reset", reset).with(prefix+"Representative-Claim", claim).
		with(prefix+short+"-Status", "rejected").with(prefix+short+"-Reset", reset).with(prefix+short+"-Utilization", "1")
}

func anthropicError(name string, status int, kind, message string, means run.LimitKind) Refusal {
	return Refusal{Name: name, Status: status, Means: means, Body: marshal(map[string]any{
		"type": "error", "error": map[string]string{"type": kind, "message": message}, "request_id": "req_test",
	})}
}

func openAIError(name string, status int, kind, code, message string, means run.LimitKind) Refusal {
	return Refusal{Name: name, Status: status, Means: means, Body: marshal(map[string]any{
		"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code},
	})}
}

func openAIFailed(name, code, message string, means run.LimitKind) Refusal {
	return Refusal{Name: name, Failed: map[string]string{"code": code, "message": message}, Means: means}
}

func geminiError(name string, status int, word, message string, means run.LimitKind, details ...any) Refusal {
	return Refusal{Name: name, Status: status, Means: means, Body: marshal(map[string]any{
		"error": map[string]any{"code": status, "message": message, "status": word, "details": details},
	})}
}

// page is what a proxy before the API answers.
func page(name string, status int, means run.LimitKind) Refusal {
	title := strings.ToUpper(name[:1]) + name[1:]
	return Refusal{Name: name, Status: status, Means: means, Header: map[string]string{"Content-Type": "text/html"},
		Body: "<html><head><title>" + title + "</title></head><body><h1>" + title + "</h1></body></html>"}
}
