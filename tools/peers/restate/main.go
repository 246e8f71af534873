// Command restate executes the work of test/bench as a Restate service. Its address has three parts: the server's
// ingress, its admin API, and where the service listens.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/restatedev/sdk-go/server"

	"github.com/passbook-run/passbook/test/bench/peer"
)

type engine struct {
	ingress *ingress.Client
	admin   string
	steps   *peer.Steps
}

func main() { peer.Main(open) }

func open(ctx context.Context, o peer.Options, steps *peer.Steps) (peer.Engine, func() error, error) {
	parts := strings.Split(o.Address, ",")
	if len(parts) != 3 {
		return nil, nil, errors.New("-address: give ingress, admin API and service, separated by commas")
	}
	e := &engine{ingress.NewClient("http://" + parts[0]), "http://" + parts[1], steps}
	service := restate.NewService("Work").
		Handler("Run", restate.NewServiceHandler(e.work)).
		Handler("Wake", restate.NewServiceHandler(wake))
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		served <- server.NewRestate().WithLogger(slog.NewTextHandler(io.Discard, nil), true).Bind(service).
			Start(ctx, parts[2])
	}()
	closer := func() error {
		stop()
		return <-served
	}
	if err := e.call(ctx, http.MethodPost, "/deployments", map[string]any{"uri": "http://" + parts[2]}, nil); err != nil {
		return nil, nil, errors.Join(err, closer())
	}
	return e, closer, nil
}

func (e *engine) work(ctx restate.Context, w peer.Work) (answers int, err error) {
	for i := 1; i <= w.Steps; i++ {
		answer, err := restate.Run(ctx, func(ctx restate.RunContext) (string, error) { return e.steps.Do(ctx, w, i) })
		if err != nil {
			return answers, err
		}
		if answer != "" || len(w.Agent) == 0 {
			answers++
		}
		if i == w.Wait {
			if _, err := restate.Signal[string](ctx, "wake").Result(); err != nil {
				return answers, err
			}
		}
	}
	return answers, nil
}

func wake(ctx restate.Context, invocation string) (restate.Void, error) {
	restate.ResolveSignal(ctx, invocation, "wake", "go")
	return restate.Void{}, nil
}

// Start uses an idempotency key, because the answer of an invocation without one is not kept.
func (e *engine) Start(ctx context.Context, id string, w peer.Work) (string, error) {
	sent, err := ingress.ServiceSend[peer.Work](e.ingress, "Work", "Run").Send(ctx, w, restate.WithIdempotencyKey(id))
	if err != nil {
		return "", err
	}
	return sent.Id(), nil
}

func (e *engine) Await(ctx context.Context, name string) (int, error) {
	return ingress.InvocationById[int](e.ingress, name).Attach(ctx)
}

func (e *engine) Wake(ctx context.Context, name string) error {
	_, err := ingress.Service[string, restate.Void](e.ingress, "Work", "Wake").Request(ctx, name)
	return err
}

// Fork restarts a completed invocation from the journal entry of the step before.
func (e *engine) Fork(ctx context.Context, name string, step int) (string, error) {
	var found struct{ Rows []struct{ Index int } }
	query := fmt.Sprintf("SELECT index FROM sys_journal WHERE id = '%s' AND entry_type = 'Command: Run' ORDER BY index",
		name)
	if err := e.call(ctx, http.MethodPost, "/query", map[string]string{"query": query}, &found); err != nil {
		return "", err
	}
	if len(found.Rows) < step-1 || step < 2 {
		return "", fmt.Errorf("the journal of %s has %d steps", name, len(found.Rows))
	}
	var forked struct {
		ID string `json:"new_invocation_id"`
	}
	path := fmt.Sprintf("/invocations/%s/restart-as-new?from=%d", name, found.Rows[step-2].Index)
	err := e.call(ctx, http.MethodPatch, path, nil, &forked)
	return forked.ID, err
}

func (e *engine) Revert(context.Context, string, int) error { return peer.ErrNotOffered }

// call asks the admin API.
func (e *engine) call(ctx context.Context, method, path string, body, answer any) (err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, method, e.admin+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Body.Close()) }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, r.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
