package run

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Command is something to type about a run. Words in capitals, such as TEXT, stand for what the operator writes there.
type Command struct {
	Operation Operation  // what it does with the run; empty: none that the table of statuses knows
	First     string     // what has to be done before it, for people; empty: nothing
	Steps     [][]string // arguments of starter, one list for each command: verb, run, flags
	Messages  []Sent     // the same for an open run, without starter; empty: there is none
}

// Sent is a message as Temporal's own tools send it, as an Update or a signal.
type Sent struct {
	Name  string
	Input string // JSON
}

// Situation is what counts besides the state, for what to type next.
type Situation struct {
	EffectiveStatus
	Dir     string   // how the run is named in commands: its directory, or its id
	Worker  []string // arguments of starter that start a worker
	Unread  bool     // the run has written events, and none can be read
	Damaged bool     // the journal is damaged, or records damage that is not repaired
	Paused  []string // aliases of the projects that are paused
}

// NextCommands returns what to type next about a run, the likeliest first. It is pure, and the only place that decides
// on it: the workflow's queries and Web UI details, status, errors and the watch screen show its commands.
func NextCommands(s State, at Situation) []Command {
	next := commandsFor(s, at)
	if at.Damaged && at.Liveness != LiveOpen {
		return append([]Command{{Operation: Repair, Steps: [][]string{{"repair-state", at.Dir, "--apply"}}}}, next...)
	}
	// no message is acted on before; a worker of this build does not serve a run of another one
	if n := at.NoWorker; n != nil && n.Version == nil && n.Polls == nil && len(next) > 0 && len(at.Worker) > 0 {
		next[0].Steps = append([][]string{at.Worker}, next[0].Steps...)
	}
	return next
}

func commandsFor(s State, at Situation) []Command {
	if h := at.Held; h != nil && h.DiskFull {
		return []Command{resumed(State{Reason: DiskFull}, at.Dir)}
	}
	status := at.Status
	switch {
	case status == Unknown && at.Unread:
		return []Command{{Steps: [][]string{{"rebuild", s.RunID, "--output-dir", at.Dir}}}}
	case status == Pending && at.Liveness == LiveOpen:
		return []Command{watched(at.Dir)}
	case !status.Known(), status == Unknown, status == Pending:
		return []Command{{Steps: [][]string{{"server", "status"}, {"run", "--config", "FILE", "--output-dir", at.Dir}}}}
	case status == Done && s.NotApproved():
		return append(corrected(s, at.Dir), changes(s, at.Dir)...)
	case status == Done:
		return ended(s, at.Dir)
	case status == Halted:
		return append(corrected(s, at.Dir), forced(Resume, "", at.Dir))
	case status == Cancelled && len(s.Projects) > 0:
		return corrected(s, at.Dir)
	case status == Cancelled:
		return append(append([]Command{diagnosed(at.Dir)}, afterEnd(s, status, at.Dir)...), followed(s, at.Dir))
	case status.Closed():
		return append([]Command{diagnosed(at.Dir)}, afterEnd(s, status, at.Dir)...)
	case status.Class() == Live:
		return slices.Concat(undecided(s, at.Dir), resumedProjects(at), live(at))
	}
	return append(blockedProjects(s, at.Dir), pausing(s, status, at.Dir)...)
}

func diagnosed(dir string) Command {
	return Command{Operation: Diagnose, Steps: [][]string{{"diagnose", dir}}}
}

func reported(dir string) Command {
	return Command{Operation: Observe, Steps: [][]string{{"report", dir}}}
}

// corrected are the commands of a run whose work was not accepted: another task that corrects it, and the report.
func corrected(s State, dir string) []Command {
	return []Command{followed(s, dir), reported(dir)}
}

// ended are the commands of a finished run: inspect what it changed and what it did, or continue with another task.
func ended(s State, dir string) []Command {
	return append(changes(s, dir), reported(dir), followed(s, dir))
}

// followed is the command that continues with another task in a new run. The pipelines of projects are beside that of
// their run.
func followed(s State, dir string) Command {
	args := []string{"run", "--follow-up", dir, "--task", "TEXT"}
	if len(s.Projects) > 0 {
		args = append(args, "--config", "FILE")
	}
	return Command{Operation: FollowUp, Steps: [][]string{args}}
}

// changes shows what a run changed in its tree. A run without one has none: its report shows the artifact; each
// project of a run has its own.
func changes(s State, dir string) []Command {
	if s.Tree == nil || len(s.Projects) > 0 {
		return nil
	}
	return []Command{{Operation: Observe, Steps: [][]string{{"diff", dir}}}}
}

// live are the commands of a run that is at work.
func live(at Situation) []Command {
	watch := watched(at.Dir)
	switch {
	case at.Liveness == LiveUnknown:
		watch.Steps = append([][]string{{"server", "start"}}, watch.Steps...)
		return []Command{watch}
	case at.NoWorker != nil:
		return []Command{watch}
	}
	return []Command{watch, {Operation: Pause, Steps: [][]string{{"pause", at.Dir}}, Messages: []Sent{{"pause", "{}"}}}}
}

func watched(dir string) Command {
	return Command{Operation: Observe, Steps: [][]string{{"watch", dir}}}
}

// pausing are the commands of a run that waits for an operator.
func pausing(s State, status Status, dir string) []Command {
	q, asks := s.Asks()
	if status == WaitingLimit {
		return append(undecided(s, dir), watched(dir), tried(dir))
	}
	if !asks && status == Paused {
		return []Command{resumed(s, dir)}
	}
	next := decisions(q, dir)
	if status == Paused {
		next = append(next, resumed(s, dir))
	}
	return next
}

// tried is the command that ends the wait for a limit.
func tried(dir string) Command {
	return Command{Operation: Resume, Steps: [][]string{{"resume", dir, "--now"}}, Messages: []Sent{{"resume", "{}"}}}
}

// afterEnd are the commands that continue a run which ended with work left.
func afterEnd(s State, status Status, dir string) []Command {
	q, undecided := s.Asks()
	switch {
	case !undecided && status == Failed: // requirement 001: no blind resume
		return []Command{forced(Resume, "", dir)}
	case !undecided:
		return []Command{{Operation: Resume, Steps: [][]string{{"resume", dir}}}}
	}
	next := decisions(q, dir)
	for i := range next {
		next[i].Messages = nil // no execution is open that would take them
	}
	return next
}

// undecided are the decisions that a run which is at work has left.
func undecided(s State, dir string) []Command {
	q, asks := s.Asks()
	if !asks {
		return nil
	}
	return decisions(q, dir)
}

// decisions are the ways to answer a question: asked on a terminal, and one for each action.
func decisions(q Question, dir string) []Command {
	all := []Command{{Operation: Decide, Steps: [][]string{{"decide", dir}}}}
	for _, action := range q.Actions {
		args, input := []string{"decide", dir, "--action", action}, map[string]string{"action": action}
		if NeedsFeedback(action) {
			args, input["feedback"] = append(args, "--feedback", "TEXT"), "TEXT"
		}
		all = append(all, Command{Operation: Decide, Steps: [][]string{args},
			Messages: []Sent{{"decide", object(input)}}})
	}
	return all
}

// resumed is the command that ends a pause.
func resumed(s State, dir string) Command {
	c := Command{Operation: Resume, Steps: [][]string{{"resume", dir}}, Messages: []Sent{{"resume", "{}"}}}
	switch s.Reason {
	case BudgetThreshold:
		if s.Raised {
			break
		}
		name, value := s.Raise()
		c.Steps = append([][]string{{"budget", dir, "--" + name, value}}, c.Steps...)
		message := `{"` + name + `":` + value + `}`
		if name == BudgetDeadline {
			message = object(map[string]string{name: value})
		}
		c.Messages = append([]Sent{{"budget", message}}, c.Messages...)
	case ConsecutiveFailures:
		c = forced(Resume, "fix the cause", dir)
		c.Messages = []Sent{{"resume", `{"force":true,"reason":"TEXT"}`}}
	case DiskFull:
		c.First = "free space on the disk"
	case PassFailed, GateFailed, SetupFailed:
		c.First = "fix the cause"
	}
	return c
}

// Raise suggests a budget that lets a run continue.
func (s State) Raise() (name, value string) {
	use, _ := s.SpentBudget("")
	number := func(x float64) string { return strconv.FormatFloat(math.Ceil(x), 'f', -1, 64) }
	switch {
	case use.Name == BudgetDeadline:
		return use.Name, "TIME"
	case use.Name == BudgetCalls, use.Name == BudgetHours:
		return use.Name, number(2 * use.Limit)
	case use.Name == BudgetTokens, s.Need != nil && s.Need.OfTokens:
		most := float64(2 * s.Budget.Tokens)
		if s.Need != nil {
			most = max(most, float64(s.Used.Tokens+s.Need.Tokens))
		}
		return BudgetTokens, number(most)
	}
	usd := 2 * s.Budget.CapUSD
	if s.Need != nil {
		usd = max(usd, s.Total()+s.Need.USD)
	}
	return BudgetUSD, number(usd)
}

// forced is a command that needs a reason, which is recorded.
func forced(op Operation, first, dir string) Command {
	return Command{Operation: op, First: first, Steps: [][]string{{string(op), dir, "--force", "--reason", "TEXT"}}}
}

// object encodes a map of words and numbers; its keys are sorted.
func object[V string | float64](m map[string]V) string {
	raw, err := json.Marshal(m)
	if err != nil {
		return "{}" // a number that JSON does not have
	}
	return string(raw)
}

// Forces reports whether the command insists, with a reason that is recorded.
func (c Command) Forces() bool {
	for _, args := range c.Steps {
		for _, a := range args {
			if a == "--force" {
				return true
			}
		}
	}
	return false
}

// Offers reports whether an operation is among the commands.
func Offers(next []Command, op Operation) (Command, bool) {
	for _, c := range next {
		if c.Operation == op {
			return c, true
		}
	}
	return Command{}, false
}
