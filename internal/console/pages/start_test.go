package pages

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/run"
)

// definition writes a pipeline and returns its file.
func definition(t *testing.T) string {
	folder := t.TempDir()
	file := filepath.Join(folder, "pipeline.yaml")
	for name, text := range map[string]string{"p.md": "Do {{task}}.\n", "pipeline.yaml": `pipeline: small
agent: {run: [echo, hello], reply: text}
roles: {planner: {prompt: p.md, gives: report}}
stages: [{name: plan, steps: [{role: planner}]}]
`} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return file
}

func TestStartPageShowsThePlanAndKeepsWhatWasEntered(t *testing.T) {
	d := newDesk(t)
	file := definition(t)
	_, page := d.get("/start")
	require.Contains(t, page, `name="request" value="`)
	require.Contains(t, shownText(page), "Relative paths start in")
	for _, row := range []struct {
		name  string
		form  url.Values
		code  int
		text  string
		calls int
	}{
		{"the plan", url.Values{"config": {file}, "task": {"Greet <b>"}, "show": {"plan"}}, http.StatusOK,
			"1 pass: 1 planner", 0},
		{"no file", url.Values{"task": {"Greet <b>"}}, http.StatusUnprocessableEntity, "name the file of the pipeline", 0},
		{"a file that does not exist", url.Values{"config": {file + "x"}, "task": {"Greet <b>"}, "show": {"plan"}},
			http.StatusUnprocessableEntity, "no such file", 0},
		{"no server", url.Values{"config": {file}, "task": {"Greet <b>"}}, http.StatusInternalServerError,
			errNoServer.Error(), 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			d.connected = 0
			row.form.Set("request", "r-1")
			code, page, _ := d.post("/start", row.form)
			require.Equal(t, row.code, code, shownText(page))
			require.Contains(t, shownText(page), row.text)
			require.Contains(t, page, "Greet &lt;b&gt;</textarea>", "the text is not lost")
			require.Contains(t, page, `name="request" value="r-1"`, "the same form is the same request")
			require.Equal(t, row.calls, d.connected)
		})
	}
	d.can = api.CanDecide
	code, _ := d.get("/start")
	require.Equal(t, http.StatusForbidden, code)
	code, _, _ = d.post("/start", url.Values{"config": {file}})
	require.Equal(t, http.StatusForbidden, code)
	_, page = d.get("/runs")
	require.NotContains(t, page, "/start")
}

// TestStartPageTakesNothingToExecuteFromTheAddress: a link cannot fill in what a click would then execute.
func TestStartPageTakesNothingToExecuteFromTheAddress(t *testing.T) {
	d := newDesk(t)
	_, page := d.get("/start?config=/tmp/other.yaml&task=planted&source=/tmp/else&directory=/tmp/dir")
	for _, planted := range []string{"other.yaml", "planted", "/tmp/else", "/tmp/dir"} {
		require.NotContains(t, page, planted)
	}
}

func TestFollowUpNamesTheRunThatItContinues(t *testing.T) {
	d := newDesk(t)
	s := begin(t, first, morning)
	s.pass(1, "One.")
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	s.write(d.root)
	_, page := d.get("/runs/" + first)
	require.Contains(t, page, `href="/start?follow_up=`+first)
	_, page = d.get("/start?follow_up=" + first)
	require.Contains(t, shownText(page), "The new run starts with the result of weave · 11111111")
	require.Contains(t, page, `name="follow_up" value="`+first)
	code, page, _ := d.post("/start", url.Values{"follow_up": {first}, "mode": {"follow_up"}})
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, shownText(page), "name the task of the follow-up")
	code, _ = d.get("/start?follow_up=nothing")
	require.Equal(t, http.StatusNotFound, code)
	open := asking(t, second, morning)
	open.write(d.root)
	_, page = d.get("/runs/" + second)
	require.NotContains(t, page, "/start?follow_up=")
}

// TestTextsOfARefusedFormAreShownAgain: whatever refuses a form, a user can copy what was entered.
func TestTextsOfARefusedFormAreShownAgain(t *testing.T) {
	const typed = "A long text <b>that</b> took an hour"
	kept := `readonly>A long text &lt;b&gt;that&lt;/b&gt; took an hour</textarea>`
	d := newDesk(t)
	asked := asking(t, first, morning)
	asked.decide("h-1", "continue")
	asked.pass(3, "Third.")
	asked.ask("h-2")
	asked.write(d.root)
	ended := begin(t, second, morning)
	ended.pass(1, "One.")
	ended.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	ended.write(d.root)
	for _, row := range []struct {
		name, path string
		form       url.Values
		code       int
	}{
		{"answered by another client", "/runs/" + first + "/do/decide", url.Values{"question": {"h-1"}, "digest": {"d-h-1"},
			"action": {"retry_feedback"}, "feedback": {typed}}, http.StatusConflict},
		{"the run has ended", "/runs/" + second + "/do/steer", url.Values{"text": {typed}}, http.StatusConflict},
		{"the run was removed", "/runs/33333333-cccc-4ccc-8ccc-cccccccccccc/do/steer", url.Values{"text": {typed}},
			http.StatusNotFound},
		{"no server", "/runs/" + first + "/do/steer", url.Values{"text": {typed}}, http.StatusInternalServerError},
	} {
		t.Run(row.name, func(t *testing.T) {
			code, page, _ := d.post(row.path, row.form)
			require.Equal(t, row.code, code, shownText(page))
			require.Contains(t, page, kept)
		})
	}
}

// TestFormOfALinkIsShownAgainWithoutNavigation: a form of a link that lacks something keeps the name, too.
func TestFormOfALinkIsShownAgainWithoutNavigation(t *testing.T) {
	d := newDesk(t)
	asking(t, first, morning).write(d.root)
	d.base, d.can = "/answer/x", api.CanDecide
	code, page, _ := d.post("/runs/"+first+"/do/decide", url.Values{"question": {"h-1"}, "digest": {"d-h-1"},
		"action": {"retry_feedback"}, "by": {"Grace on a train"}})
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, page, `value="Grace on a train"`)
	require.Contains(t, page, `action="/answer/x/do/decide"`)
	require.NotContains(t, page, `data-follow`)
	require.NotContains(t, page, `href="/inbox`)
}
