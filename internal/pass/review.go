package pass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
)

// Review is a structured verdict: the fenced JSON block at the end of a reply.
type Review struct {
	Verdict   string    `json:"verdict,omitempty"` // approved, rejected, incomplete or scope_expansion, or another word
	Approved  *bool     `json:"approved,omitempty"`
	ShipReady *bool     `json:"ship_ready,omitempty"`
	Findings  []Finding `json:"findings"`
	Blockers  []Finding `json:"blockers"`
	Gaps      []Finding `json:"gaps"`
	Summary   string    `json:"summary,omitempty"`
}

// Finding is one point of a review. A plain string is a finding with that text.
type Finding struct {
	Severity string `json:"severity,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Text     string `json:"text"`
}

// UnmarshalJSON reads a string or an object.
func (f *Finding) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte{'"'}) {
		return json.Unmarshal(raw, &f.Text)
	}
	type plain Finding
	return json.Unmarshal(raw, (*plain)(f))
}

// verdictRequest describes how a role returns a structured verdict.
const verdictRequest = "# Your verdict\n\nEnd your reply with one JSON block of this form. `verdict` is `approved`, " +
	"`rejected`, `incomplete` (work is missing) or `scope_expansion` (the work does more than was asked). " +
	"`ship_ready` is true only if the work can be used as it is. `blockers` are the findings that prevent that, " +
	"`gaps` is what was not checked. A finding of a whole file has the line 0.\n\n" +
	"```json\n{\n  \"verdict\": \"rejected\",\n  \"ship_ready\": false,\n" +
	"  \"findings\": [\n" +
	"    {\"severity\": \"high\", \"file\": \"path/of/file\", \"line\": 12, \"text\": \"what is wrong\"}\n" +
	"  ],\n" +
	"  \"blockers\": [\"what must change first\"],\n  \"gaps\": []\n}\n```"

// reviewFields are the members of which a block has at least one.
var reviewFields = []string{"verdict", "approved", "ship_ready"}

// errNoBlock is a reply without a structured verdict.
var errNoBlock = fmt.Errorf("no JSON block has one of %s", strings.Join(reviewFields, ", "))

// readReview reads the structured verdict of a reply.
func readReview(reply string) (*Review, error) {
	var broken error
	for _, block := range slices.Backward(jsonBlocks(reply)) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(block), &members); err != nil {
			broken = errors.Join(broken, fmt.Errorf("the JSON block is not valid: %w", err))
			continue
		}
		has := func(name string) bool { _, ok := members[name]; return ok }
		if !slices.ContainsFunc(reviewFields, has) {
			continue
		}
		var r Review
		if err := json.Unmarshal([]byte(block), &r); err != nil {
			return nil, fmt.Errorf("the JSON block is not a review: %w", err)
		}
		return &r, r.complete()
	}
	if broken != nil {
		return nil, broken
	}
	return nil, errNoBlock
}

// jsonBlocks returns the contents of the fences that are marked as JSON or not at all, in the order of the text.
func jsonBlocks(text string) []string {
	var blocks []string
	mark, language, body := "", "", []string{}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case mark == "" && strings.HasPrefix(trimmed, "```"):
			mark = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
			language, body = strings.ToLower(strings.TrimSpace(trimmed[len(mark):])), nil
		case mark != "" && strings.HasPrefix(trimmed, mark) && strings.Trim(trimmed, "`") == "":
			if inside := strings.Join(body, ""); language == "json" || language == "" && looksLikeJSON(inside) {
				blocks = append(blocks, inside)
			}
			mark = ""
		case mark != "":
			body = append(body, line)
		}
	}
	return blocks
}

// looksLikeJSON reports whether the content of a fence begins as an object or a list does.
func looksLikeJSON(text string) bool {
	trimmed := strings.TrimSpace(text)
	return strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")
}

// complete derives the verdict from the other members. Work with blockers, or that is not ready, is not approved.
func (r *Review) complete() error {
	r.Findings, r.Blockers, r.Gaps = filled(r.Findings), filled(r.Blockers), filled(r.Gaps)
	r.Verdict = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(r.Verdict)), "-", "_")
	denied := len(r.Blockers) > 0 || r.Approved != nil && !*r.Approved || r.ShipReady != nil && !*r.ShipReady
	switch {
	case r.Verdict == "" && r.Approved == nil && r.ShipReady == nil:
		return errNoBlock
	case r.Verdict == "" && denied, denied && pipeline.Approves([]string{"approved"}, r.Verdict):
		r.Verdict = "rejected"
	case r.Verdict == "":
		r.Verdict = "approved"
	}
	return nil
}

func filled(list []Finding) []Finding {
	if list == nil {
		return []Finding{}
	}
	return list
}
