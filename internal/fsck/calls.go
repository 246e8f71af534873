package fsck

import (
	"slices"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// called is a call with an answer, and the expected contents of its evidence.
type called struct {
	seq    int64
	row    int64 // seq of its row in traces.jsonl; 0: none
	about  run.Pass
	id     string
	failed bool // a failed attempt, whose files are numbered
	late   int  // number of a superseded answer
	again  bool // reuses the answer of an earlier call

	prompt, reply, envelope string // digests
}

// calls are the answered calls of a stream, and the events that determine which of them are in force.
type calls struct {
	all     []*called
	asked   map[string]string // digest of the last prompt, by file
	reverts run.Reverts
	resets  []run.Range // events that a reset of the workflow abandoned: their calls are repeated
}

// note adds one event.
func (c *calls) note(e run.Event) {
	c.reverts.Take(e)
	switch e.Kind {
	case run.KindPassStart:
		p := run.PayloadOf[run.PassStart](e)
		if c.asked == nil {
			c.asked = map[string]string{}
		}
		c.asked[layout.PromptFile(p.Pass)] = p.Prompt.Digest
	case run.KindPassAttempt:
		c.attempt(e)
	case run.KindPassEnd:
		c.end(e)
	case run.KindRunReverted:
		var r run.RunReverted
		e.Decode(&r)
		if r.Cause == "reset" {
			c.resets = append(c.resets, r.Abandoned)
		}
	}
}

func (c *calls) attempt(e run.Event) {
	p := run.PayloadOf[run.PassAttempt](e)
	if p.Output == nil || !p.Judged && p.Late == 0 {
		return
	}
	call := &called{
		seq: e.Seq, about: p.Pass, id: layout.AttemptCall(p), late: p.Late, failed: true,
		prompt: run.DigestOf(p.Prompt), reply: p.Output.Digest, envelope: run.DigestOf(p.Envelope),
	}
	if p.Prompt != nil {
		call.row = e.Seq
	}
	c.all = append(c.all, call)
}

func (c *calls) end(e run.Event) {
	p := run.PayloadOf[run.PassEnd](e)
	call := &called{seq: e.Seq, row: e.Seq, about: p.Pass, id: p.Call, again: p.Reused}
	if p.Outcome == run.CategoryOK {
		call.prompt, call.reply, call.envelope = c.asked[layout.PromptFile(p.Pass)], run.DigestOf(p.Reply),
			run.DigestOf(p.Envelope)
	} else if last := c.lastAttempt(p.Call); last != nil { // the same call, with the files of the attempt
		if !p.Attempted {
			last.row = e.Seq
		}
		return
	}
	c.all = append(c.all, call)
}

func (c *calls) lastAttempt(id string) *called {
	for _, call := range slices.Backward(c.all) {
		if call.id == id && call.failed {
			return call
		}
	}
	return nil
}

// reset reports whether a reset of the workflow abandoned an event.
func (c *calls) reset(seq int64) bool {
	return slices.ContainsFunc(c.resets, func(r run.Range) bool { return r.First <= seq && seq <= r.Last })
}

// exhibit is one file of the evidence.
type exhibit struct{ name, digest string }

// files lists the evidence of a call; nth is the number of failed attempts of the pass.
func (c *called) files(nth int) []exhibit {
	if c.failed {
		return []exhibit{{layout.FailedPrompt(c.about, nth), c.prompt}, {layout.FailedFile(c.about, nth), c.reply},
			{layout.FailedEnvelope(c.about, nth), c.envelope}}
	}
	return []exhibit{{layout.PromptFile(c.about), c.prompt}, {layout.ReplyFile(c.about), c.reply},
		{layout.EnvelopeFile(c.about), c.envelope}}
}
