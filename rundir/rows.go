package rundir

import (
	"encoding/json"
	"os"
)

// Rows reads a JSONL file of the directory. Lines that do not fit T, torn or written by somebody else, are skipped and counted.
func Rows[T any](d Dir, file string) (rows []T, skipped int, err error) {
	raw, err := os.ReadFile(d.Path(file))
	if err != nil {
		return nil, 0, err
	}
	s := split(raw, 0)
	if len(s.torn) > 0 {
		skipped++
	}
	for _, line := range s.lines {
		var row T
		if json.Unmarshal([]byte(line), &row) != nil {
			skipped++
			continue
		}
		rows = append(rows, row)
	}
	return rows, skipped, nil
}

// TraceRow is one line of traces.jsonl: a call by reference.
type TraceRow struct {
	Seq        int64  `json:"seq"`
	TS         string `json:"ts"`
	Call       string `json:"call"`
	Turn       string `json:"turn"`
	Role       string `json:"role"`
	PromptPath string `json:"prompt_path"`
	ReplyPath  string `json:"reply_path,omitempty"`
	AgentPath  string `json:"agent_path,omitempty"` // what the agent reported beside it
	Reply      string `json:"reply,omitempty"`      // digest of its text
	Outcome    string `json:"outcome"`
	DurationMS int64  `json:"duration_ms"`
	Reused     bool   `json:"reused,omitempty"`
	Joined     bool   `json:"joined,omitempty"`
}

// ReadTraces reads the lines of a traces.jsonl, wherever it comes from. Lines that are none are skipped and counted.
func ReadTraces(raw []byte) (rows []TraceRow, skipped int) {
	s := split(raw, 0)
	if len(s.torn) > 0 {
		skipped++
	}
	for _, line := range s.lines {
		var row TraceRow
		if json.Unmarshal([]byte(line), &row) != nil || row.Call == "" {
			skipped++
			continue
		}
		rows = append(rows, row)
	}
	return rows, skipped
}

// DecisionRow is one line of decisions.jsonl, as far as tools look at it.
type DecisionRow struct {
	TS       string `json:"ts"`
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	ID       string `json:"id,omitempty"`
	By       string `json:"by,omitempty"`
	Seq      int64  `json:"seq"`
}

// CostRow is one line of cost.jsonl.
type CostRow struct {
	TS         string  `json:"ts"`
	Pass       int     `json:"pass,omitempty"`
	PACycle    int     `json:"paCycle,omitempty"`
	Role       string  `json:"role"`
	Subset     string  `json:"subset,omitempty"`
	Model      string  `json:"model"`
	Input      int64   `json:"inputTokens"`
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	USD        float64 `json:"costUsd"`
	Cumulative float64 `json:"cumulativeCostUsd"`
	Estimated  bool    `json:"estimated,omitempty"`
	Seq        int64   `json:"seq"`
}

// QualityRow is one line of quality.jsonl; which fields count depends on the type.
type QualityRow struct {
	TS        string         `json:"ts"`
	Type      string         `json:"type"`
	Pass      int            `json:"pass,omitempty"`
	PACycle   int            `json:"paCycle,omitempty"`
	Result    string         `json:"result,omitempty"`
	Checks    int            `json:"checks,omitempty"`
	Warnings  int            `json:"warnings,omitempty"`
	Score     *float64       `json:"score,omitempty"`
	Threshold *float64       `json:"threshold,omitempty"`
	Subset    string         `json:"subset,omitempty"`
	Rotation  string         `json:"rotation,omitempty"`
	Counts    map[string]int `json:"-"` // of verifier-depth: whatever the pipeline tallies
}

// UnmarshalJSON keeps the tallied counts, whose names are the pipeline's.
func (r *QualityRow) UnmarshalJSON(raw []byte) error {
	type plain QualityRow
	if err := json.Unmarshal(raw, (*plain)(r)); err != nil {
		return err
	}
	if r.Type != "verifier-depth" {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	r.Counts = map[string]int{}
	for name, v := range all {
		var n int
		if name != "pass" && name != "seq" && json.Unmarshal(v, &n) == nil && string(v) != "null" {
			r.Counts[name] = n
		}
	}
	return nil
}
