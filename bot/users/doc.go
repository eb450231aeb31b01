// Package users implements the commands /pair and /users. With /pair, an owner creates a link that invites a user. With
// /users, an owner lists the users, changes their roles, and removes users who joined with a link.
package users
