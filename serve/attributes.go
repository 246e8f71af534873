package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/workflows"
)

// EnsureAttributes makes the search attributes of runs known to a namespace, and waits until they can be used. Without an error a run may set
// them. Who may not change the namespace gets the server's refusal and the command for those who may; runs do without them then. Where they may not
// even be listed, as on hosted Temporal, a query tells whether they are there.
func EnsureAttributes(ctx context.Context, c client.Client, namespace string) error {
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return probe(ctx, c, namespace, fmt.Errorf("list the search attributes of namespace %s: %w", namespace, err))
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
			return byHand(namespace, missing, fmt.Errorf("add search attributes to namespace %s: %w", namespace, err))
		}
	}
	return awaitAttributes(ctx, c, namespace)
}

// probe asks a server that does not list its search attributes whether it can filter by ours. denied: why it does not list them.
func probe(ctx context.Context, c client.Client, namespace string, denied error) error {
	if _, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: workflows.AttributesQuery()}); err != nil {
		return byHand(namespace, workflows.Attributes(), fmt.Errorf("%w; filter by them: %w", denied, err))
	}
	return nil
}

// byHand adds to an error what somebody with more rights has to do.
func byHand(namespace string, missing map[string]enumspb.IndexedValueType, err error) error {
	return fmt.Errorf("%w. Create them once with an administrator's credentials: `%s`; on Temporal Cloud: `%s`",
		err, CreateAttributes(namespace, "", missing), createOnCloud(namespace, missing))
}

// CreateAttributes is the command that creates search attributes. Without an address it is for the server of the environment.
func CreateAttributes(namespace, address string, missing map[string]enumspb.IndexedValueType) string {
	words := []string{"temporal operator search-attribute create -n", namespace}
	if address != "" {
		words = append(words, "--address", address)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		words = append(words, "--name", name, "--type", missing[name].String())
	}
	return strings.Join(words, " ")
}

func createOnCloud(namespace string, missing map[string]enumspb.IndexedValueType) string {
	words := []string{"tcld namespace search-attributes add --namespace", namespace}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		words = append(words, "--sa", name+"="+missing[name].String())
	}
	return strings.Join(words, " ")
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
