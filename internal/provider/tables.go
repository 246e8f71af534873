package provider

import "regexp"

// text compiles an expression without case.
func text(expression string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + expression) }

// claudeRules are those of Claude Code: its result has a status and words. Older versions have only the text.
var claudeRules = []rule{
	{cause: Output, codes: []string{"max_output_tokens"}, text: text(`exceeded the \d+ output token maximum`)},
	{cause: Plan, codes: []string{"usage_limit_reached"}, text: text(
		`^Claude AI usage limit reached|^You['’]ve hit your .*limit|limit reached [∙·] resets`)},
	{cause: Credit, codes: []string{"billing_error"}, text: text(
		`^Credit balance is too low|credit balance is too low to `)},
	{cause: Login, codes: []string{"authentication_error", "authentication_failed"}, http: []int{401}, text: text(
		`invalid (x-)?api.key|please run /login|oauth token has expired|authentication_error`)},
	{cause: Overload, codes: []string{"overloaded_error"}, http: []int{529, 503}, text: text(
		`\boverloaded(_error)?\b`)},
	{cause: Rate, codes: []string{"rate_limit_error", "rate_limit"}, http: []int{429}, text: text(`\brate_limit_error\b`)},
	{cause: Unreachable, codes: []string{"connection_failed"}, text: text(
		`^API Error: (Connection|Unable to connect|Request timed out)`)},
}

// codexRules are those of the Codex CLI: the error of a failed turn is a text only.
var codexRules = []rule{
	{cause: Output, text: text(`^Incomplete response returned, reason: max_output_tokens`)},
	{cause: Plan, text: text(`^(ERROR: )?You['’]ve hit your usage limit|"type": ?"usage_limit_reached"`)},
	{cause: Credit, text: text(`^(ERROR: )?Quota exceeded\. Check your plan|\binsufficient_quota\b`)},
	{cause: Login, http: []int{401}, text: text(`^(ERROR: )?(not logged in|your access token could not be refreshed)`)},
	{cause: Overload, http: []int{503, 529}, text: text(`^(ERROR: )?Selected model is at capacity`)},
	{cause: Rate, http: []int{429}},
	{cause: Unreachable, text: text(
		`stream disconnected before completion|error sending request for url|connection failed`)},
}

// geminiRules are those of the Gemini CLI: a text, and with -o json the status.
var geminiRules = []rule{
	{cause: Output, text: text(`truncated because it exceeded the token limit`)},
	{cause: Credit, text: text(`prepayment credits are depleted`)},
	{cause: Plan, text: text(`exhausted your (daily quota|capacity) on this model`)},
	{cause: Login, http: []int{401}, text: text(
		`must specify the GEMINI_API_KEY|API_KEY_INVALID|API key not valid|\bUNAUTHENTICATED\b|set an auth method`)},
	{cause: Rate, http: []int{429}, text: text(`Resource has been exhausted|\bRESOURCE_EXHAUSTED\b`)},
	{cause: Overload, http: []int{503}, text: text(`The model is overloaded|"status": ?"UNAVAILABLE"`)},
	{cause: Unreachable, text: text(
		`^(\[API Error: )?(terminated|exception TypeError: fetch failed)|TypeError: (terminated|fetch failed)`)},
}

// generalRules are for standard error and for programs of other providers.
var generalRules = []rule{
	{cause: Login, http: []int{401}, text: text(
		`invalid (x-)?api.key|authentication (error|failed)|please run /login|oauth token has expired`)},
	{cause: Rate, http: []int{429}, text: text(`\brate[ _-]?limit|429 Too Many Requests|too many requests`)},
	{cause: Overload, http: []int{503, 529}, text: text(`\boverloaded\b|\bat capacity\b`)},
}
