package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/grants"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// overlaps are the overlap policies by their names on the command line. Terminating is excluded: it would leave the
// run running.
var overlaps = map[string]enumspb.ScheduleOverlapPolicy{
	"skip":         enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	"buffer-one":   enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,
	"buffer-all":   enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL,
	"cancel-other": enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER,
	"allow-all":    enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
}

// Overlaps lists the names of the overlap policies.
func Overlaps() []string { return slices.Sorted(maps.Keys(overlaps)) }

// overlapOf reads a name; empty: the policy of the schedule.
func overlapOf(name string) (enumspb.ScheduleOverlapPolicy, error) {
	p, known := overlaps[name]
	if !known && name != "" {
		return p, &ScheduleError{Why: fmt.Sprintf("--overlap %s: write one of %s", name,
			strings.Join(Overlaps(), ", "))}
	}
	return p, nil
}

func overlapName(p enumspb.ScheduleOverlapPolicy) string {
	for name, policy := range overlaps {
		if policy == p {
			return name
		}
	}
	return p.String()
}

// ScheduleError reports a schedule that was refused or not found. Nothing was changed.
type ScheduleError struct {
	Name  string // empty: the argument is wrong, whatever the name
	Why   string
	Known []string // existing schedules, if the name matches none
}

func (e *ScheduleError) Error() string {
	if e.Name == "" {
		return e.Why
	}
	return fmt.Sprintf("schedule %s: %s", e.Name, e.Why)
}

// NewSchedule describes a schedule to create.
type NewSchedule struct {
	contract.Schedule
	Cron           []string
	Every          time.Duration // 0: by cron alone
	TimeZone       string        // IANA name; empty: UTC, or as in the cron expression
	Jitter         time.Duration
	CatchUp        time.Duration // 0: the server's default, a year
	Overlap        string
	Paused         bool
	PauseOnFailure bool
	Note           string
}

// scheduleName is the form of names, which become part of directory names.
var scheduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// Check reports everything that is wrong with a new schedule.
func (n NewSchedule) Check() error {
	var wrong []string
	if !scheduleName.MatchString(n.Name) {
		wrong = append(wrong,
			fmt.Sprintf("NAME %q: write up to 63 letters, digits, - and _, the first a letter or digit", n.Name))
	}
	if len(n.Cron) == 0 && n.Every == 0 {
		wrong = append(wrong, "set the times: --cron EXPRESSION or --every DURATION")
	}
	if n.Every != 0 && n.Every < time.Second {
		wrong = append(wrong, fmt.Sprintf("--every %s: the shortest interval is 1s", n.Every))
	}
	for _, c := range n.Cron {
		if strings.TrimSpace(c) == "" {
			wrong = append(wrong, `--cron "": write five fields, such as "0 9 * * 1-5"`)
		}
	}
	if _, err := overlapOf(n.Overlap); err != nil {
		wrong = append(wrong, err.Error())
	}
	if len(wrong) > 0 {
		return &ScheduleError{Why: strings.Join(wrong, "\n")}
	}
	return nil
}

func (n NewSchedule) spec() client.ScheduleSpec {
	s := client.ScheduleSpec{TimeZoneName: n.TimeZone, Jitter: n.Jitter}
	for _, c := range n.Cron {
		if !strings.Contains(c, "#") {
			c += " # " + c // Temporal keeps only the comment
		}
		s.CronExpressions = append(s.CronExpressions, c)
	}
	if n.Every > 0 {
		s.Intervals = []client.ScheduleIntervalSpec{{Every: n.Every}}
	}
	return s
}

// CreateSchedule creates a schedule that starts runs of a definition on this host. The definition is valid now, and
// is read again at every start.
func (o Operator) CreateSchedule(ctx context.Context, n NewSchedule, def Definition) (ScheduleRow, error) {
	if err := n.Check(); err != nil {
		return ScheduleRow{}, err
	}
	policy, err := overlapOf(n.Overlap)
	if err != nil {
		return ScheduleRow{}, err
	}
	if err := policyOf(def.Plan, "", run.Budget{CapUSD: def.Plan.Budget.USD}).Allowed(o.Settings,
		def.Plan.Budget.USD); err != nil {
		return ScheduleRow{}, err
	}
	n.Host, n.Store, n.By = o.Host, o.Settings.Store, o.By
	n.Task, n.Note = o.Redact.Text(n.Task), o.Redact.Text(n.Note)
	if err := o.free(ctx, n.Name); err != nil {
		return ScheduleRow{}, err
	}
	key, err := grants.Load(o.Settings)
	if err != nil {
		return ScheduleRow{}, err
	}
	n.Grant = key.Sign(n.Permission())
	undo := nothing
	if HostBound(n.Store) {
		if undo, err = o.handOverSchedule(n.Name, "schedule create", def.Plan); err != nil {
			return ScheduleRow{}, err
		}
	}
	if err := o.create(ctx, n, policy); err != nil {
		return ScheduleRow{}, errors.Join(err, undo())
	}
	row, err := o.Schedule(ctx, n.Name)
	if err == nil && len(row.Next) == 0 {
		return row, errors.Join(o.neverDue(ctx, n.Name), undo())
	}
	return row, err
}

// free reports whether a name is free, before an existing schedule's environment is replaced.
func (o Operator) free(ctx context.Context, name string) error {
	_, err := o.Client.ScheduleClient().GetHandle(ctx, name).Describe(ctx)
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create schedule %s: %w", name, err)
	}
	return taken(name)
}

func taken(name string) error {
	return &ScheduleError{Name: name,
		Why: fmt.Sprintf("it exists already, and was not changed; take another name, or first run: starter schedule "+
			"delete %s", shell.Quote(name))}
}

func (o Operator) create(ctx context.Context, n NewSchedule, policy enumspb.ScheduleOverlapPolicy) error {
	_, err := o.Client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: n.Name, Spec: n.spec(), Overlap: policy, CatchupWindow: n.CatchUp, Paused: n.Paused,
		PauseOnFailure: n.PauseOnFailure, Note: n.Note,
		Action: &client.ScheduleWorkflowAction{
			ID: "schedule/" + n.Name, Workflow: workflows.ScheduledName, Args: []any{n.Schedule},
			TaskQueue:     contract.HostQueues(o.Settings.TaskQueue, o.Host).Dir,
			StaticSummary: fmt.Sprintf("%s: %s", n.Name, n.Config),
		},
	})
	var invalid *serviceerror.InvalidArgument
	switch {
	case errors.Is(err, temporal.ErrScheduleAlreadyRunning):
		return taken(n.Name)
	case errors.As(err, &invalid):
		return &ScheduleError{Name: n.Name,
			Why: fmt.Sprintf("Temporal refuses %s: %s. Nothing was created", n.times(), invalid.Message)}
	case err != nil:
		return fmt.Errorf("create schedule %s: %w", n.Name, err)
	}
	return nil
}

// times lists the arguments that set the times.
func (n NewSchedule) times() string {
	var out []string
	for _, c := range n.Cron {
		out = append(out, fmt.Sprintf("--cron %q", c))
	}
	if n.Every > 0 {
		out = append(out, "--every "+n.Every.String())
	}
	if n.TimeZone != "" {
		out = append(out, "--time-zone "+n.TimeZone)
	}
	return strings.Join(out, " ")
}

// neverDue deletes a new schedule that never comes due.
func (o Operator) neverDue(ctx context.Context, name string) error {
	err := o.Client.ScheduleClient().GetHandle(ctx, name).Delete(ctx)
	return errors.Join(&ScheduleError{Name: name,
		Why: "its times never come, such as the 31st of February. Nothing was created"}, err)
}

// known adds the existing schedules to the error of a missing one.
func (o Operator) known(ctx context.Context, name, what string, err error) error {
	var missing *serviceerror.NotFound
	if err == nil {
		return nil
	}
	if !errors.As(err, &missing) {
		return fmt.Errorf("%s schedule %s: %w", what, name, err)
	}
	names, err := o.ScheduleNames(ctx)
	return errors.Join(&ScheduleError{Name: name, Why: "not found", Known: names}, err)
}

// own returns the handle of a schedule that this program created.
func (o Operator) own(ctx context.Context, name, what string) (client.ScheduleHandle, *client.ScheduleDescription,
	contract.Schedule, error) {
	h := o.Client.ScheduleClient().GetHandle(ctx, name)
	d, err := h.Describe(ctx)
	if err != nil {
		return nil, nil, contract.Schedule{}, o.known(ctx, name, what, err)
	}
	s, err := o.startsOf(d)
	if err != nil {
		return nil, nil, s, &ScheduleError{Name: name, Why: err.Error()}
	}
	return h, d, s, nil
}

// PauseSchedule stops a schedule from starting runs. Occurrences that have not started are cancelled; runs continue.
// It returns how many were cancelled.
func (o Operator) PauseSchedule(ctx context.Context, name, note string) (int, error) {
	h, _, _, err := o.own(ctx, name, "pause")
	if err != nil {
		return 0, err
	}
	if err := h.Pause(ctx, client.SchedulePauseOptions{Note: o.Redact.Text(cmp.Or(note,
		"paused by "+o.By))}); err != nil {
		return 0, fmt.Errorf("pause schedule %s: %w", name, err)
	}
	return o.cancelUnstarted(ctx, h)
}

// UnpauseSchedule lets a schedule start runs again, from its next time on. On the schedule's host the operator's
// environment is passed to its runs.
func (o Operator) UnpauseSchedule(ctx context.Context, name, note string) error {
	h, _, s, err := o.own(ctx, name, "unpause")
	if err != nil {
		return err
	}
	undo := nothing
	if s.Host == o.Host && HostBound(s.Store) {
		def, err := o.definitionOf(contract.Occurrence{Schedule: s})
		if err != nil {
			return err
		}
		if undo, err = o.handOverSchedule(name, "schedule unpause", def.Plan); err != nil {
			return err
		}
	}
	if err := h.Unpause(ctx, client.ScheduleUnpauseOptions{Note: o.Redact.Text(cmp.Or(note,
		"unpaused by "+o.By))}); err != nil {
		return errors.Join(fmt.Errorf("unpause schedule %s: %w", name, err), undo())
	}
	return nil
}

// DeleteSchedule deletes a schedule. Occurrences that have not started are cancelled; runs continue. It returns how
// many were cancelled.
func (o Operator) DeleteSchedule(ctx context.Context, name string) (int, error) {
	h, _, s, err := o.own(ctx, name, "delete")
	if err != nil {
		return 0, err
	}
	if err := h.Pause(ctx,
		client.SchedulePauseOptions{Note: "deleted by " + o.By}); err != nil { // nothing must start meanwhile
		return 0, fmt.Errorf("delete schedule %s: %w", name, err)
	}
	n, err := o.cancelUnstarted(ctx, h)
	if err != nil {
		return n, err
	}
	if err := h.Delete(ctx); err != nil {
		return n, fmt.Errorf("delete schedule %s: %w", name, err)
	}
	if s.Host == o.Host {
		err = errors.Join(err, environ.Remove(schedulesDir(o.Settings.StateDir), name))
	}
	return n, err
}

// cancelUnstarted cancels the occurrences of a schedule that have no run yet.
func (o Operator) cancelUnstarted(ctx context.Context, h client.ScheduleHandle) (int, error) {
	d, err := h.Describe(ctx)
	if err != nil {
		return 0, fmt.Errorf("describe schedule %s: %w", h.GetID(), err)
	}
	n := 0
	for _, a := range d.Info.RecentActions {
		x, err := o.occurrence(ctx, a.StartWorkflowResult)
		if err != nil {
			return n, err
		}
		if x.Status != OccurrenceWaiting {
			continue
		}
		var missing *serviceerror.NotFound
		if err := o.Client.CancelWorkflow(ctx, x.Workflow, x.execution); err != nil && !errors.As(err, &missing) {
			return n, fmt.Errorf("cancel %s: %w", x.Workflow, err)
		}
		n++
	}
	return n, nil
}

// BackfillSchedule starts the occurrences between two times, as if they were due now. Empty overlap: one after
// another.
func (o Operator) BackfillSchedule(ctx context.Context, name string, from, to time.Time, overlap string) error {
	policy, err := overlapOf(overlap)
	if err != nil {
		return err
	}
	if overlap == "" {
		policy = enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL
	}
	h, _, _, err := o.own(ctx, name, "backfill")
	if err != nil {
		return err
	}
	if err := h.Backfill(ctx, client.ScheduleBackfillOptions{Backfill: []client.ScheduleBackfill{{Start: from, End: to,
		Overlap: policy}}}); err != nil {
		return fmt.Errorf("backfill schedule %s: %w", name, err)
	}
	return nil
}

// triggerFor bounds how long a trigger waits for its result.
const triggerFor = 30 * time.Second

// TriggerSchedule starts a run now, even of a paused schedule. A nil occurrence: the overlap policy prevents a start.
func (o Operator) TriggerSchedule(ctx context.Context, name, overlap string) (*Occurrence, error) {
	policy, err := overlapOf(overlap)
	if err != nil {
		return nil, err
	}
	h, before, _, err := o.own(ctx, name, "trigger")
	if err != nil {
		return nil, err
	}
	if err := h.Trigger(ctx, client.ScheduleTriggerOptions{Overlap: policy}); err != nil {
		return nil, fmt.Errorf("trigger schedule %s: %w", name, err)
	}
	if policy == enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED {
		policy = before.Schedule.Policy.Overlap
	}
	return o.triggered(ctx, h, before.Info, policy)
}

// triggered waits until a trigger has started a run or was refused.
func (o Operator) triggered(ctx context.Context, h client.ScheduleHandle, before client.ScheduleInfo,
	policy enumspb.ScheduleOverlapPolicy) (*Occurrence, error) {
	ctx, cancel := context.WithTimeout(ctx, triggerFor)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := h.Describe(ctx)
		if err != nil {
			return nil, fmt.Errorf("trigger schedule %s: %w", h.GetID(), err)
		}
		recent := now.Info.RecentActions
		switch {
		case now.Info.NumActions > before.NumActions && len(recent) > 0:
			x, err := o.occurrence(ctx, recent[len(recent)-1].StartWorkflowResult)
			if err != nil || x.RunID != "" || x.Problem != "" && x.Status == OccurrenceFailed || ctx.Err() != nil {
				return x, err
			}
		case now.Info.NumActionsSkippedOverlap > before.NumActionsSkippedOverlap:
			return nil, nil
		case len(before.RunningWorkflows) > 0 && (policy == enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE ||
			policy == enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL):
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("trigger schedule %s: nothing has started in %s; see starter schedule describe %s",
				h.GetID(), triggerFor, shell.Quote(h.GetID()))
		case <-tick.C:
		}
	}
}
