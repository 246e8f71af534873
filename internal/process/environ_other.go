//go:build !linux

package process

// WithEnv returns nothing: environments are unreadable here.
func WithEnv(_, _ string) ([]Identity, error) { return nil, nil }
