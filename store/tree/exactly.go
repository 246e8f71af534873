package tree

import "strings"

// Exactly is the ignore pattern that fits one path below a tree's root and nothing else; a path that ends with a slash is a folder.
func Exactly(path string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, " ", `\ `).Replace(path)
	return "/" + escaped
}
