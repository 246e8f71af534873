// Package tools checks the files that no compiler reads. It is a module of its own, so that what it needs for that does not
// become a dependency of Passbook.
package tools
