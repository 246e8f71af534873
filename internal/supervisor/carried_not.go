//go:build !carried

package supervisor

// carried is missing in a program that was built by the go command alone: it supervises calls itself.
var carried []byte
