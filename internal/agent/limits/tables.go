package limits

import "github.com/passbook-run/passbook/internal/lazyregexp"

// rule recognizes a kind by one of its signs.
type rule struct {
	kind  Kind
	codes []string
	http  []int
	text  lazyregexp.Regexp // of a line
}

// text compiles an expression without case that matches at the start of a line.
func text(expression string) lazyregexp.Regexp { return lazyregexp.New(`(?i)^(?:` + expression + `)`) }

// serverErrors are the statuses of a provider, or of a proxy before it, that fails.
var serverErrors = []int{408, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}

// claudeRules are those of Claude Code: its result has a status and words. Older versions have only the text.
var claudeRules = []rule{
	{kind: Output, codes: []string{"max_output_tokens"}, text: text(
		`API Error: Claude's response exceeded the \d+ output token maximum`)},
	{kind: Plan, codes: []string{"usage_limit_reached"}, text: text(
		`Claude AI usage limit reached|You['’]ve hit your (?:[\w’'-]+ ){0,4}limit(?:[.,!]|$| [∙·•|-])|` +
			`(?:[\w-]+ ){1,3}limit reached [∙·•] resets|You['’]re out of (?:extra usage|usage credits)\b|` +
			`You have reached your specified API usage limits`)},
	{kind: Credit, codes: []string{"billing_error"}, http: []int{402}, text: text(
		`Credit balance is too low|Your credit balance is too low to |This service is disabled for your org|` +
			`Extra usage is required for `)},
	{kind: Model, codes: []string{"not_found_error"}, text: text(
		`There's an issue with the selected model|model: [\w.-]+$`)},
	{kind: Login, codes: []string{"authentication_error", "authentication_failed", "permission_error",
		"org_disabled_credential"}, http: []int{401, 403}, text: text(
		`invalid (?:x-)?api.key|Not logged in|please run /login|.{0,80} · please run /login|` +
			`oauth token (?:has expired|revoked)|Failed to authenticate[.:]|Your \w+ belongs to a disabled organization`)},
	{kind: Overload, codes: []string{"overloaded_error"}, http: serverErrors, text: text(
		`(?:API Error: )?(?:Repeated 529 )?Overloaded(?:_error)?\b`)},
	{kind: Rate, codes: []string{"rate_limit_error", "rate_limit"}, http: []int{429}, text: text(
		`rate_limit_error\b`)},
	{kind: Unreachable, codes: []string{"connection_failed"}, text: text(
		`API Error: (?:Connection|Unable to connect|Request timed out|fetch failed|Can['’]t reach the API server|` +
			`No internet route)`)},
}

// codexRules are those of the Codex CLI: the error of a failed turn is a text only.
var codexRules = []rule{
	{kind: Output, text: text(`Incomplete response returned, reason: max_output_tokens`)},
	{kind: Plan, codes: []string{"usage_limit_reached"}, text: text(
		`You(?:['’]ve| have) hit your usage limit(?:[.,!]|$| for )`)},
	{kind: Credit, codes: []string{"insufficient_quota"}, text: text(`Quota exceeded\. Check your plan|` +
		`You hit your spend cap|To use Codex with your ChatGPT plan, upgrade`)},
	{kind: Model, codes: []string{"model_not_found"}, text: text(
		`(?:The )?model [\W]?[\w.-]+[\W]? (?:does not exist|is not supported)|` +
			`(?:The )?[\W]?[\w.-]+[\W]? model is not supported`)},
	{kind: Login, http: []int{401, 403}, text: text(`not logged in|your access token could not be refreshed`)},
	{kind: Overload, http: serverErrors, text: text(
		`Selected model is at capacity|We['’]re currently experiencing high demand`)},
	{kind: Rate, codes: []string{"rate_limit_exceeded"}, http: []int{429}, text: text(`rate limit exceeded: `)},
	{kind: Unreachable, text: text(`stream disconnected before completion|error sending request for url|` +
		`connection failed\b`)},
}

// geminiRules are those of the Gemini CLI: a text, and with -o json the status.
var geminiRules = []rule{
	{kind: Output, text: text(`.{0,80}truncated because it exceeded the token limit`)},
	{kind: Credit, text: text(`Your prepayment credits are depleted`)},
	{kind: Plan, text: text(`You have exhausted your (?:daily quota|capacity) on this model`)},
	{kind: Model, text: text(`models/[\w.-]+ is not found|(?:Requested entity|Model) (?:was )?not found`)},
	{kind: Login, codes: []string{"UNAUTHENTICATED", "PERMISSION_DENIED"}, http: []int{401, 403}, text: text(
		`.{0,80}must specify the GEMINI_API_KEY|API key not valid|Please set an auth method`)},
	{kind: Overload, codes: []string{"UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"}, http: serverErrors, text: text(
		`The model is overloaded|No capacity available for model`)},
	{kind: Rate, codes: []string{"RESOURCE_EXHAUSTED"}, http: []int{429}, text: text(
		`Resource (?:has been )?exhausted`)},
	{kind: Unreachable, text: text(`terminated\]?$|fetch failed\b|TypeError: (?:terminated|fetch failed)`)},
}

// generalRules are for standard error and for programs of other providers.
var generalRules = []rule{
	{kind: Login, http: []int{401}, text: text(
		`invalid (?:x-)?api.key|authentication (?:error|failed)|please run /login|oauth token has expired`)},
	{kind: Rate, http: []int{429}, text: text(
		`(?:would exceed your )?rate[ _-]?limit|(?:API Error: )?429 (?:Too Many Requests|rate limit)|too many requests`)},
	{kind: Overload, http: []int{503, 529}, text: text(
		`overloaded\b|(?:\w+ (?:is |are )?)?(?:at capacity|overloaded)\b`)},
}
