package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// LimitKind is why a model provider does not answer.
type LimitKind string

// Kinds of limits. The zero value means that the provider gave no known cause.
const (
	LimitPlan        LimitKind = "plan"        // the usage limit of a subscription or of a day
	LimitRate        LimitKind = "rate"        // too many requests
	LimitOverload    LimitKind = "overload"    // the provider is overloaded
	LimitUnreachable LimitKind = "unreachable" // the connection failed or broke off
	LimitLogin       LimitKind = "login"       // the agent is not logged in, or its key is refused
	LimitModel       LimitKind = "model"       // the model is unknown, or the account may not use it
	LimitCredit      LimitKind = "credit"      // the account has no credit
	LimitBudgetDay   LimitKind = "budget_day"  // the budget of the host for the day does not cover the call
	LimitOutput      LimitKind = "output"      // the answer exceeded the maximum number of output tokens
	LimitAtOnce      LimitKind = "at_once"     // as many calls run as may run at once: the call waits for its turn
)

// AtOnceBound is of what only some calls run at once.
type AtOnceBound string

// Bounds.
const (
	AtOnceHost     AtOnceBound = "host"
	AtOnceAccount  AtOnceBound = "account"
	AtOncePipeline AtOnceBound = "pipeline"
)

// Passes reports whether the provider answers again after a time: the run waits for it.
func (k LimitKind) Passes() bool {
	return k == LimitPlan || k == LimitBudgetDay || k == LimitAtOnce || k.Temporary()
}

// Temporary reports whether the provider is expected to answer again soon. A run waits only for a maximum time.
func (k LimitKind) Temporary() bool {
	return k == LimitRate || k == LimitOverload || k == LimitUnreachable
}

// Blocks reports whether an operator has to do something before the provider answers again.
func (k LimitKind) Blocks() bool { return k == LimitLogin || k == LimitModel || k == LimitCredit }

// Limit is why a provider did not answer a call.
type Limit struct {
	Kind    LimitKind `json:"kind"`
	Reset   string    `json:"reset,omitempty"`   // when it answers again; empty: unknown
	Account string    `json:"account,omitempty"` // whose limit it is; empty: unknown
	Agent   string    `json:"agent,omitempty"`   // for display: claude -p

	// at_once: of what only Most calls run at the same time
	Bound AtOnceBound `json:"bound,omitempty"`
	Most  int         `json:"most,omitempty"`

	AccountID string `json:"account_id,omitempty"` // of at_once: of the call that waits
	Again     string `json:"again,omitempty"`      // when its host wants to be asked again; empty: after the reset
}

// Whose names the account of the limit, or the agent.
func (l Limit) Whose() string {
	switch l.Kind {
	case LimitBudgetDay:
		return "the budget of the next day"
	case LimitAtOnce:
		return "its turn"
	}
	if l.Account != "" {
		return "account " + l.Account
	}
	return cmp.Or(l.Agent, "the agent")
}

// AtOnce describes a limit of at_once: account work may make 2 calls at once.
func (l Limit) AtOnce() string {
	who := "this host"
	switch l.Bound {
	case AtOnceAccount:
		who = "account " + l.Account
	case AtOncePipeline:
		who = "the pipeline"
	}
	return fmt.Sprintf("%s may make %s at once", who, Plural(l.Most, "call"))
}

// LimitedCall is a call that waits for a limit.
type LimitedCall struct {
	Member string `json:"member,omitempty"` // of a group
	Limit
	Until    string `json:"until,omitempty"` // when it is made again; empty: at once
	Since    string `json:"since"`           // the first of the consecutive limits
	N        int    `json:"n"`               // number of consecutive limits; 0: the last call met none
	WaitedMS int64  `json:"waited_ms"`       // sum of the waits, the current one included
	// attempts that failed before; limits use none
	AttemptsUsed int `json:"attempts_used"`
}

// Limited is the limit that a run waits for: of the call that is made again first. After the wait it remains until the
// call is answered.
type Limited struct {
	LimitedCall
	Others []LimitedCall `json:"others,omitempty"` // of the other members of the group
}

// NewLimited is the limit of a run with these calls; nil: there is none.
func NewLimited(calls []LimitedCall) *Limited {
	if len(calls) == 0 {
		return nil
	}
	all := slices.Clone(calls)
	slices.SortStableFunc(all, func(a, b LimitedCall) int { return cmp.Compare(a.Until, b.Until) })
	return &Limited{LimitedCall: all[0], Others: all[1:]}
}

// Calls lists the calls that wait.
func (l *Limited) Calls() []LimitedCall {
	if l == nil {
		return nil
	}
	return append([]LimitedCall{l.LimitedCall}, l.Others...)
}

// Call returns the call of a member; empty outside groups.
func (l *Limited) Call(member string) LimitedCall {
	for _, c := range l.Calls() {
		if c.Member == member {
			return c
		}
	}
	return LimitedCall{Member: member}
}

// Rest is the time until the call is made again; 0: it is not known.
func (l *Limited) Rest(now time.Time) time.Duration {
	if l.Kind == LimitAtOnce {
		return 0
	}
	at, err := time.Parse(TimeFormat, l.Until)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}

// without leaves out the call of a member.
func (l *Limited) without(member string) *Limited {
	return NewLimited(slices.DeleteFunc(l.Calls(), func(c LimitedCall) bool { return c.Member == member }))
}

// Due is the limit after a wait: all calls are made again if all is set, else those of the account (its name, or an id)
// and those whose time has come.
func (l *Limited) Due(now, account string, all bool) *Limited {
	calls := l.Calls()
	for i, c := range calls {
		if all || account != "" && (c.Account == account || c.AccountID == account) || c.Until <= now {
			calls[i].Until, calls[i].WaitedMS = "", max(0, c.WaitedMS-between(now, c.Until))
		}
	}
	return NewLimited(calls)
}

// between is the time from one moment to a later one in milliseconds; 0: it is not later, or one is unknown.
func between(from, to string) int64 {
	a, err1 := time.Parse(TimeFormat, from)
	b, err2 := time.Parse(TimeFormat, to)
	if err1 != nil || err2 != nil {
		return 0
	}
	return max(0, b.Sub(a).Milliseconds())
}

// Next is the call after it met a limit. Another kind of limit begins a new count.
func (c LimitedCall) Next(l Limit, now string) LimitedCall {
	if c.N == 0 || c.Kind.Temporary() != l.Kind.Temporary() {
		c.N, c.Since, c.WaitedMS = 0, now, 0
	}
	c.Limit, c.N, c.Until = l, c.N+1, ""
	return c
}

// RunLimited suspends a run until a provider answers again.
type RunLimited struct {
	Limited
}

// RunUnlimited ends the wait for a limit.
type RunUnlimited struct {
	By      string     `json:"by,omitempty"` // the operator
	Note    string     `json:"note,omitempty"`
	Cause   LimitCause `json:"cause"`
	Account string     `json:"account,omitempty"` // that is open again; turn: id of the call in the queue
}

// LimitCause is why the wait for a limit ends.
type LimitCause string

// Causes.
const (
	LimitTimer    LimitCause = "time"    // the time has come
	LimitOperator LimitCause = "resume"  // an operator asked for a call at once
	LimitAccount  LimitCause = "account" // the account is open again
	LimitProbe    LimitCause = "probe"   // the run makes the first call after the reset of the account
	LimitTurn     LimitCause = "turn"    // it is the turn of a call that waited in the queue
)

func (p RunUnlimited) why() string {
	switch p.Cause {
	case LimitOperator:
		return "an operator asked for a call at once"
	case LimitProbe:
		return "it makes the first call after the reset of account " + p.Account
	case LimitAccount:
		return "account " + p.Account + " is open again"
	case LimitTurn:
		return "it is its turn"
	}
	return "the time was reached"
}

// limitReason is the reason of a run that waits for a limit.
func limitReason(k LimitKind) string { return "limit-" + string(k) }

func (f *folder) limit(e *Event) {
	p := decoded[RunLimited](e)
	if !f.become(WaitingLimit, limitReason(p.Kind)) {
		return
	}
	f.InFlight, f.Limited = nil, &p.Limited
	f.head(e)
}

// longWait is the sum of waits after which receivers are notified of a limit that passes soon.
const longWait = 15 * time.Minute

// limitOccasion is set once for each limit: at a usage limit, and when the provider has not answered for long.
func limitOccasion(after State) string {
	l := after.Limited
	if l == nil || l.Kind == LimitAtOnce {
		return ""
	}
	from, err1 := time.Parse(TimeFormat, after.TS)
	until, err2 := time.Parse(TimeFormat, l.Until)
	wait := until.Sub(from)
	waited := time.Duration(l.WaitedMS) * time.Millisecond
	crossed := err1 == nil && err2 == nil && waited >= longWait && waited-wait < longWait
	if l.N == 1 && !l.Kind.Temporary() || l.Kind.Temporary() && crossed {
		return "limit"
	}
	return ""
}

func (f *folder) endLimit(e *Event) {
	p := decoded[RunUnlimited](e)
	if f.become(Running, "") {
		f.Limited = f.Limited.Due(e.TS, p.Account, p.Cause == LimitOperator)
		f.beginPlan()
	}
}

// answeredLimit notes that the provider of a call answers: the next limit is the first one.
func (f *folder) answeredLimit(member string) {
	calls := f.Limited.Calls()
	for i, c := range calls {
		if c.Member == member {
			calls[i] = LimitedCall{Member: member, AttemptsUsed: c.AttemptsUsed}
		}
	}
	f.Limited = NewLimited(calls)
}

// Clock is when and where a limit is shown.
type Clock struct {
	Now  time.Time
	Zone *time.Location // nil: UTC
}

// clock is that of the event.
func (e *Entry) clock() Clock {
	at, err := time.Parse(TimeFormat, e.TS)
	if err != nil {
		at = time.Time{}
	}
	return Clock{Now: at, Zone: e.Zone}
}

// At writes a time for people: 15:00 (Europe/Berlin), with its day if that is another one.
func (c Clock) At(at string) string {
	t, err := time.Parse(TimeFormat, at)
	if err != nil {
		return at
	}
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}
	t, now := t.In(zone), c.Now.In(zone)
	form, name := "15:04", zone.String()
	if t.Year() != now.Year() || t.YearDay() != now.YearDay() {
		form = "2006-01-02 15:04"
	}
	if t.Sub(now).Abs() < time.Minute {
		form += ":05"
	}
	if zone == time.Local {
		name = t.Format("MST")
	}
	return fmt.Sprintf("%s (%s)", t.Format(form), name)
}

// LimitText describes the wait for a limit; empty: the run does not wait for one.
func (s State) LimitText(c Clock) string {
	if s.Status != WaitingLimit || s.Limited == nil {
		return ""
	}
	at, whose, kind := s.Limited.Until, s.Limited.Whose(), s.Limited.Kind.noun()
	text := fmt.Sprintf("waits until %s for %s (%s)", c.At(at), whose, kind)
	if s.Limited.Kind == LimitAtOnce {
		text = "waits for its turn: " + s.Limited.AtOnce()
	} else if reset, err := time.Parse(TimeFormat, at); err == nil && !c.Now.IsZero() && reset.Before(c.Now) {
		text = fmt.Sprintf("waits for %s (%s): the reset at %s has passed", whose, kind, c.At(at))
	}
	if left := s.Passes.Total - s.Passes.LastSettled; left > 0 && s.Passes.Total > 0 {
		noun := "passes"
		if left == 1 {
			noun = "pass"
		}
		text += fmt.Sprintf(", %d %s left", left, noun)
	}
	return text
}

// noun names the kind of a limit in few words.
func (k LimitKind) noun() string {
	switch k {
	case LimitPlan:
		return "usage limit"
	case LimitRate:
		return "rate limit"
	case LimitOverload:
		return "overloaded"
	case LimitUnreachable:
		return "no connection"
	case LimitBudgetDay:
		return "per_day of the settings"
	case LimitAtOnce:
		return "calls at once"
	}
	return string(k)
}
