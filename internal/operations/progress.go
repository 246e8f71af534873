package operations

import "context"

// Progress is the progress of a long operation.
type Progress struct {
	What        string // "Storing the inputs"
	Done, Total int    // Total 0: not known
}

type progressKey struct{}

// Reporting returns a context whose operations report their progress. tell must be fast and safe for concurrent use.
func Reporting(ctx context.Context, tell func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// report reports progress to the function of the context.
func report(ctx context.Context, what string, done, total int) {
	if tell, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		tell(Progress{What: what, Done: done, Total: total})
	}
}
