package traces

import (
	"cmp"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

func keyOf(e run.Event, p run.Pass) passKey {
	return passKey{p.Step, p.Member, cmp.Or(e.Lane, p.Lane), p.Round, p.Redo}
}

// pass returns the open pass of an event, and opens it.
func (f *Fold) pass(e run.Event, p run.Pass) *pass {
	key := keyOf(e, p)
	if open := f.passes[key]; open != nil {
		return open
	}
	up := f.lanes[key.lane]
	if up == nil {
		f.enter(e, p.Round, p.Set)
		up = f.within(e)
	}
	o := f.start("pass "+p.Role, seqKey("pass", e.Seq), up)
	o.put(text("passbook.step", p.Step), text("passbook.role", p.Role), text("passbook.member", p.Member),
		text("passbook.item", p.Item), text("passbook.set", p.Set), number("passbook.round", int64(p.Round)),
		number("passbook.pass", int64(p.Number)), number("passbook.redo", int64(p.Redo)))
	f.passes[key] = &pass{open: o}
	return f.passes[key]
}

func (f *Fold) startPass(e run.Event, p run.PassStart) {
	o := f.pass(e, p.Pass)
	f.end(&o.attempt)
	o.openAttempt(f, e, p.Attempt)
	o.agent = p.Agent
}

func (p *pass) openAttempt(f *Fold, e run.Event, attempt int) {
	p.attempt, p.number = f.start("attempt", seqKey("attempt", e.Seq), p.open), attempt
	p.attempt.put(number("passbook.attempt", int64(attempt)))
}

func (f *Fold) attempt(e run.Event, p run.PassAttempt) {
	o := f.pass(e, p.Pass)
	if p.Late > 0 { // a superseded answer; the attempt continues
		o.note("superseded answer", f.now, number("passbook.seq", e.Seq))
		return
	}
	if o.attempt == nil { // the same attempt, delivered again
		o.openAttempt(f, e, p.Attempt)
	}
	c := call{Pass: p.Pass, id: p.Call, began: p.StartedAt, ms: p.DurationMS, tools: p.Tools, session: p.ResumedFrom,
		category: p.Category, message: p.Message}
	if p.Spend != nil {
		c.spend = *p.Spend
	}
	if p.Limit == nil || p.Judged { // else no call was made
		f.call(e, o, c)
	}
	o.attempt.fails(string(p.Category), p.Message)
	f.end(&o.attempt)
}

func (f *Fold) endPass(e run.Event, p run.PassEnd) {
	o := f.pass(e, p.Pass)
	if !p.Attempted {
		if o.attempt == nil {
			o.openAttempt(f, e, p.Attempts)
		}
		c := call{Pass: p.Pass, id: p.Call, began: p.StartedAt, ms: p.DurationMS, tools: p.Tools, spend: p.Spend,
			category: p.Outcome, session: p.ResumedFrom}
		if p.Session != nil {
			c.session = p.Session.ID
		}
		f.call(e, o, c)
		if p.Outcome != run.CategoryOK {
			o.attempt.fails(string(p.Outcome), "")
		}
	}
	f.end(&o.attempt)
	o.put(text("passbook.outcome", string(p.Outcome)), text("passbook.verdict", p.Verdict),
		number("passbook.attempts", int64(p.Attempts)))
	if p.Reused {
		o.put(isTrue("passbook.reused"))
	}
	if p.Outcome != run.CategoryOK {
		o.fails(string(p.Outcome), "")
	}
	f.close(o.open, f.now)
	delete(f.passes, keyOf(e, p.Pass))
}

// call is what an event records of a call.
type call struct {
	run.Pass
	id, began, session string
	ms                 int64
	spend              run.Spend
	tools              *run.ToolUses
	category           run.Category
	message            string
}

// call adds the span of the call of an attempt, and those of its tools.
func (f *Fold) call(e run.Event, p *pass, c call) {
	key := callKey(c.id, p.number)
	if f.calls[key] {
		key = seqKey(key, e.Seq)
	}
	f.calls[key] = true
	asks := c.Gives != pipeline.GivesOutcome // else it is a command
	name := "run command"
	if asks {
		name = "invoke_agent " + c.Role
	}
	o := f.start(name, key, p.attempt)
	o.Kind = tracepb.Span_SPAN_KIND_CLIENT
	began, ok := timeOf(c.began)
	if !ok {
		began = time.Unix(0, int64(p.attempt.StartTimeUnixNano)) //nolint:gosec // it was made from an int64
	}
	o.StartTimeUnixNano = nanos(began)
	o.put(text("passbook.call", c.id), text("passbook.agent", p.agent), text("passbook.outcome", string(c.category)))
	if asks {
		t := c.spend.Tokens
		o.put(text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", c.Role),
			text("gen_ai.provider.name", providerOf(p.agent)),
			text("gen_ai.response.model", c.spend.Model), text("gen_ai.conversation.id", c.session),
			number("gen_ai.usage.input_tokens", t.Input+t.CacheRead+t.CacheWrite),
			number("gen_ai.usage.output_tokens", t.Output),
			number("gen_ai.usage.cache_read.input_tokens", t.CacheRead),
			number("gen_ai.usage.cache_creation.input_tokens", t.CacheWrite),
			amount("passbook.cost.usd", c.spend.USD), text("passbook.cost.known", string(c.spend.Known)))
	}
	if c.category != run.CategoryOK {
		o.fails(string(c.category), c.message)
	}
	if c.tools != nil {
		o.put(number("passbook.tools.count", int64(c.tools.Count)))
		for i, use := range c.tools.First {
			f.tool(o, seqKey(key+" tool", int64(i)), use)
		}
	}
	f.close(o, began.Add(time.Duration(c.ms)*time.Millisecond))
}

// providerOf returns the provider of an agent, as the semantic conventions name it; empty: unknown.
func providerOf(agent string) string {
	program, _, _ := strings.Cut(agent, " ")
	switch program {
	case "claude":
		return "anthropic"
	case "codex":
		return "openai"
	case "gemini":
		return "gcp.gemini"
	}
	return ""
}

// tool adds the span of a tool call. Events do not record its time: it is at the begin of the call, without duration.
func (f *Fold) tool(o *open, key string, use run.ToolUse) {
	t := f.start("execute_tool "+use.Name, key, o)
	t.StartTimeUnixNano = o.StartTimeUnixNano
	t.put(text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", use.Name),
		text("passbook.tool.input", use.Input), text("passbook.tool.state", use.State), isTrue("passbook.time_unknown"))
	if use.State == "failed" {
		t.fails(use.State, "")
	}
	t.EndTimeUnixNano = t.StartTimeUnixNano
	f.ended = append(f.ended, t.Span)
}
