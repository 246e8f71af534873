package serve

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/workflows"
)

// EnsureAttributes makes the search attributes of runs known to a namespace, and waits until they can be used. Without an error a run may set
// them. Who may not change the namespace gets the server's refusal; runs do without them then.
func EnsureAttributes(ctx context.Context, c client.Client, namespace string) error {
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list the search attributes of namespace %s: %w", namespace, err)
	}
	missing := map[string]enumspb.IndexedValueType{}
	for name, kind := range workflows.Attributes() {
		switch have, there := known.CustomAttributes[name]; {
		case !there:
			missing[name] = kind
		case have != kind:
			return fmt.Errorf("search attribute %s of namespace %s is %s, not %s: remove it (temporal operator search-attribute remove --name %s)", name, namespace, have, kind, name)
		}
	}
	if len(missing) > 0 {
		req := &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing}
		if _, err := c.OperatorService().AddSearchAttributes(ctx, req); err != nil {
			return fmt.Errorf("add search attributes to namespace %s: %w", namespace, err)
		}
	}
	return awaitAttributes(ctx, c, namespace)
}

// awaitAttributes asks until the server's parts all know the attributes: they keep a copy of the list for a while.
func awaitAttributes(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: workflows.AttributesQuery()})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the search attributes of namespace %s: %w", namespace, err)
		case <-tick.C:
		}
	}
}
