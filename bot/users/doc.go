// Package users is the screen of /pair and /users. An owner invites users with links, sees who may use the bot, and
// changes the roles of users who joined.
package users
