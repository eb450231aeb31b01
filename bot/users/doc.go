// Package users is the screen of /pair and /users: an owner invites users by links, sees who may use the bot, and changes
// roles of users who joined.
package users
