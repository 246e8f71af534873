package workflows

import (
	"cmp"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// handlers handles messages: signals and Updates.
type handlers struct{ *inbox }

// register must be called before the workflow yields for the first time.
func (hs *handlers) register(ctx workflow.Context) error {
	for _, kind := range messages(hs.runID()) {
		verb := kind.verb
		handle := func(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
			if err := hs.awaitHost(ctx, verb); err != nil {
				return contract.Ack{}, err
			}
			m, err := hs.redacted(ctx, m)
			if err != nil {
				return contract.Ack{}, err
			}
			still := standsStill(hs.state())
			ack, err := hs.handle(ctx, kind, m)
			switch {
			case still || hs.journal.isNewer():
				err = cmp.Or(hs.confirm(ctx), err)
			case err == nil:
				hs.note(verb, m)
			}
			return ack, err
		}
		opts := workflow.UpdateHandlerOptions{
			Description: kind.update,
			Validator: func(_ workflow.Context, m contract.Message) error {
				if hs.journal.isNewer() { // the handler refuses it as superseded
					return nil
				}
				return hs.validate(kind, m)
			},
		}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, verb, handle, opts); err != nil {
			return err
		}
		ch := workflow.GetSignalChannelWithOptions(ctx, verb, workflow.SignalChannelOptions{Description: kind.signal})
		workflow.GoNamed(ctx, "signal "+verb, func(ctx workflow.Context) {
			for {
				var raw converter.RawValue
				ch.Receive(ctx, &raw)
				if hs.awaitOpen(ctx) != nil {
					return // cancelled: the end of the execution drains the rest
				}
				hs.handleSignal(ctx, kind, raw)
			}
		})
	}
	hs.children.listen(ctx)
	return nil
}

// awaitHost is awaitOpen for Updates, whose sender waits. A pause needs no directory and returns at once. Other
// messages are refused if no worker opens the directory.
func (hs *handlers) awaitHost(ctx workflow.Context, verb string) error {
	if verb == contract.VerbPause {
		return nil
	}
	ok, err := awaitFor(ctx, hostTimeout, "until the directory is open",
		func() bool { return hs.open || hs.noWorker })
	if err != nil || hs.open {
		return err
	}
	hs.noWorker = hs.noWorker || !ok // the next message is refused at once
	return unmet("the run directory %s is not open. %s", hs.in.Target.Dir, startWorkerHint(hs.in.DirQueue))
}

// handle does what a message asks for, if it is still valid.
func (hs *handlers) handle(ctx workflow.Context, kind message, m contract.Message) (contract.Ack, error) {
	if err := hs.validate(kind, m); err != nil { // what was valid on acceptance may not be now
		return contract.Ack{}, err
	}
	ack, err := kind.apply(hs, ctx, m)
	hs.show(ctx)
	return ack, err
}

// drainSignals handles signals that have arrived and were not received: no signal is lost at the end of an
// execution.
func (hs *handlers) drainSignals(ctx workflow.Context) {
	for _, kind := range messages(hs.runID()) {
		ch := workflow.GetSignalChannel(ctx, kind.verb)
		for raw := (converter.RawValue{}); ch.ReceiveAsync(&raw); raw = (converter.RawValue{}) {
			hs.handleSignal(ctx, kind, raw)
		}
	}
}

// handleSignal handles one signal. One that is invalid is journaled as refused: it never fails the run.
func (hs *handlers) handleSignal(ctx workflow.Context, kind message, raw converter.RawValue) {
	hs.busy++
	defer func() { hs.busy-- }()
	m, err := readMessage(raw)
	if err == nil {
		m, err = hs.redacted(ctx, m)
	}
	if err == nil {
		_, err = hs.handle(ctx, kind, m)
	}
	if err == nil || hs.journal.isNewer() {
		hs.note(kind.verb, m)
		return
	}
	hs.deferError(hs.journalRefused(ctx, run.DecisionRefused{Verb: kind.verb, Reason: errorMessage(err), By: m.By}))
}

// confirm has the directory compared before an Update is answered. A run that works finds out by what it writes. A host that
// does not answer in time does not hold up the answer.
func (hs *handlers) confirm(ctx workflow.Context) error {
	if _, err := hs.journal.compared(ctx); err != nil && !hs.journal.isNewer() {
		return err
	}
	if hs.journal.isNewer() {
		return superseded()
	}
	return nil
}

// startWorkerHint describes what to do if no worker polls the queue of a directory.
func startWorkerHint(queue string) string {
	return "No worker polls task queue " + queue +
		": start one on that host (run \"starter server start\" or the worker program), then send the message again"
}

// drainHandlers waits for all handlers. A signal that was delivered to its coroutine in this workflow task is
// invisible to ReceiveAsync: a coroutine that starts now runs after all of them.
func (hs *handlers) drainHandlers(ctx workflow.Context) error {
	turned := false
	workflow.GoNamed(ctx, "after all handlers", func(workflow.Context) { turned = true })
	if err := workflow.Await(ctx,
		func() bool { return turned && hs.busy == 0 && workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	hs.drainSignals(ctx)
	return nil
}
