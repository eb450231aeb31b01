// Package changes takes snapshots of a project's files before and after each turn. It shows the changes of a turn, and
// undoes, redoes and commits them.
//
// Package git works on the repositories, and package bot shows the results.
package changes
