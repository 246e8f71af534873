package operate

import "context"

// Progress is how far something has come that may take long.
type Progress struct {
	What        string // "Storing the inputs"
	Done, Total int    // Total 0: nobody knows
}

type progressKey struct{}

// Reporting gives a context whose operations tell how far they have come. tell must be quick, and may be called from several goroutines.
func Reporting(ctx context.Context, tell func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// report tells how far something has come, to whoever wants to know.
func report(ctx context.Context, what string, done, total int) {
	if tell, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		tell(Progress{What: what, Done: done, Total: total})
	}
}
