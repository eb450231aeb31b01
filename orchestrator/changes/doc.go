// Package changes looks at the files of a project before and after each turn, says what a turn changed, and undoes, does again and commits
// it. It knows no chat messages; package git does what is done in repositories.
package changes
