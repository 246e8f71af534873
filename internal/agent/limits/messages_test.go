package limits

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// message is a row of testdata/messages.jsonl: what a program printed, and the limit that it means.
type message struct {
	ID       string    `json:"id"`
	Program  string    `json:"provider"`
	Where    string    `json:"where"`
	Exit     int       `json:"exit"`
	Observed time.Time `json:"observed_at"`
	Text     string    `json:"text"`
	Extra    struct {  // other fields of claude's result
		Status int    `json:"api_error_status"`
		Type   string `json:"api_error_type"`
		Error  string `json:"api_error"`
	} `json:"extra"`
	Expect struct {
		Kind  string     `json:"kind"`
		Until *time.Time `json:"until"`
	} `json:"expect"`
}

// report returns the message where its program prints it.
func (m message) report() Report {
	r := Report{Program: m.Program, Exit: m.Exit, HTTP: m.Extra.Status, Code: cmp.Or(m.Extra.Error, m.Extra.Type)}
	switch m.Where {
	case "result":
		r.Text = m.Text
	case "stdout":
		r.Printed = m.Text
	case "stderr":
		r.Stderr = m.Text
	}
	return r
}

func messages(t *testing.T) []message {
	file, err := os.Open("testdata/messages.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var all []message
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var m message
		require.NoError(t, json.Unmarshal(lines.Bytes(), &m), lines.Text())
		all = append(all, m)
	}
	require.Len(t, all, 41)
	return all
}

// TestMessages reads what programs printed. Only failed calls are judged.
func TestMessages(t *testing.T) {
	dhaka, err := time.LoadLocation("Asia/Dhaka")
	require.NoError(t, err)
	inZone := map[string]time.Time{ // of messages that name no zone
		"c6": time.Date(2026, 11, 30, 9, 0, 0, 0, dhaka), "c7": time.Date(2026, 11, 22, 20, 0, 0, 0, dhaka),
		"n3": time.Date(2026, 12, 8, 0, 0, 0, 0, dhaka), "n17": time.Date(2026, 12, 3, 4, 5, 0, 0, dhaka),
		"n31": time.Date(2026, 11, 29, 15, 0, 0, 0, dhaka),
	}
	for _, m := range messages(t) {
		t.Run(m.ID, func(t *testing.T) {
			if m.Exit == 0 {
				require.Equal(t, "none", m.Expect.Kind)
				return // internal/agent: TestAnswersAreNotJudged
			}
			got := m.report().Limit(m.Observed, dhaka)
			want := Limit{Kind: Kind(m.Expect.Kind)}
			if m.Expect.Kind == "none" {
				want.Kind = ""
			}
			if at, ok := inZone[m.ID]; ok && want.Kind != "" {
				want.Until = at.UTC()
			} else if m.Expect.Until != nil {
				want.Until = *m.Expect.Until
			}
			if got.Kind == Output { // no limit of an account
				got.Kind = ""
			}
			require.Equal(t, want.Kind, got.Kind)
			require.Equal(t, want.Until, got.Until)
		})
	}
}

func TestResetTimes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	observed := time.Date(2026, 11, 24, 13, 30, 15, 500e6, time.UTC) // 14:30:15 in Berlin, a Tuesday
	const hit = "You've hit your limit · resets "
	for name, row := range map[string]struct {
		report Report
		want   string // empty: unknown
	}{
		"today":                    {Report{Text: hit + "3pm"}, "2026-11-24T14:00:00Z"},
		"just passed":              {Report{Text: hit + "2:30pm"}, "2026-11-24T13:30:17Z"},
		"just passed, with a date": {Report{Text: hit + "Nov 24, 2:16pm"}, "2026-11-24T13:30:17Z"},
		"just passed, of an event": {Report{Program: "claude", Text: hit + "9pm", HTTP: 429,
			Event: json.RawMessage(`{"status":"rejected","resetsAt":1795527015}`)}, "2026-11-24T13:30:17Z"},
		"tomorrow":        {Report{Text: hit + "2:15pm"}, "2026-11-25T13:15:00Z"},
		"midnight":        {Report{Text: hit + "12am"}, "2026-11-24T23:00:00Z"},
		"noon":            {Report{Text: hit + "12:00 p.m."}, "2026-11-25T11:00:00Z"},
		"24 hours":        {Report{Text: hit + "15:00"}, "2026-11-24T14:00:00Z"},
		"24 hours in UTC": {Report{Text: hit + "15:00 (UTC)"}, "2026-11-24T15:00:00Z"},
		"date":            {Report{Text: hit + "Dec 1 at 9am (America/New_York)"}, "2026-12-01T14:00:00Z"},
		"next year":       {Report{Text: hit + "Jan 1, 9am"}, "2027-01-01T08:00:00Z"},
		"date with year": {Report{Text: "You've hit your usage limit. Try again at Nov 29th, 2026 4:15 AM."},
			"2026-11-29T03:15:00Z"},
		"date alone":   {Report{Text: hit + "Dec 1"}, "2026-11-30T23:00:00Z"},
		"weekday":      {Report{Text: hit + "Thu 9am"}, "2026-11-26T08:00:00Z"},
		"same weekday": {Report{Text: hit + "Tuesday at 9am"}, "2026-12-01T08:00:00Z"},
		"RFC 3339":     {Report{Text: hit + "at 2026-11-24T18:00:00+02:00"}, "2026-11-24T16:00:00Z"},
		"unknown zone": {Report{Text: hit + "3pm (Mars/Olympus)"}, ""},
		"number alone": {Report{Text: hit + "3"}, ""},
		"no such time": {Report{Text: hit + "27:00"}, ""},
		"past":         {Report{Text: "Claude AI usage limit reached|1795000000"}, ""},
		"too far":      {Report{Text: "Claude AI usage limit reached|1895000000"}, ""},
		"milliseconds": {Report{Text: "Claude AI usage limit reached|1795530000123"}, "2026-11-24T14:20:01Z"},
		"rate": {Report{Text: `API Error: 429 {"error":{"type":"rate_limit_error","message":"Please try again in 20s."}}`},
			"2026-11-24T13:30:36Z"},
		"RetryInfo": {Report{Text: `[API Error: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED",` +
			`"details":[{"retryDelay":"53s"}]}}]`}, "2026-11-24T13:31:09Z"},
		"resets_in_seconds": {Report{Printed: `{"error":{"type":"usage_limit_reached","resets_in_seconds":60}}`},
			"2026-11-24T13:31:16Z"},
		"retry-after": {Report{Stderr: `Codex error: {"error":{"type":"rate_limit_exceeded"},` +
			`"headers":{"Retry-After":"90"}}`},
			"2026-11-24T13:31:46Z"},
		"event": {Report{Program: "claude", Text: hit + "3pm", HTTP: 429,
			Event: json.RawMessage(`{"status":"rejected","resetsAt":1795530601}`)}, "2026-11-24T14:30:01Z"},
		"event of an allowed call": {Report{Program: "claude", Text: hit + "3pm",
			Event: json.RawMessage(`{"status":"allowed","resetsAt":1795530601}`)}, "2026-11-24T14:00:00Z"},
		"credit": {Report{Text: "Credit balance is too low · resets 3pm"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := row.report.Limit(observed, berlin)
			require.NotEmpty(t, got.Kind)
			if row.want == "" {
				require.True(t, got.Until.IsZero(), got.Until)
				return
			}
			require.Equal(t, row.want, got.Until.Format(time.RFC3339Nano))
		})
	}
}

// TestResetInRepeatedHour is on the day on which clocks go back.
func TestResetInRepeatedHour(t *testing.T) {
	york, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	got := Report{Text: "You've hit your limit · resets 6am"}.Limit(time.Date(2026, 11, 1, 4, 30, 0, 0, time.UTC), york)
	require.Equal(t, "2026-11-01T11:00:00Z", got.Until.Format(time.RFC3339))
}

// TestEventIsPlanLimit covers a refusal whose only sign of a plan is the event before it.
func TestEventIsPlanLimit(t *testing.T) {
	event := json.RawMessage(`{"status":"rejected","resetsAt":1795530601}`)
	now := time.Unix(1795530000, 0)
	got := Report{Program: "claude", HTTP: 429, Event: event}.Limit(now, time.UTC)
	require.Equal(t, Plan, got.Kind)
	got = Report{Program: "claude", Text: "make: *** [test] Error 1", Event: event}.Limit(now, time.UTC)
	require.Empty(t, got.Kind, "it failed for another reason")
}
