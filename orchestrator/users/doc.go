// Package users knows who may use ductor: the users of the configuration, and those who took an invitation of an owner. It
// makes the invitations and takes them.
//
// It does NOT say what a role may do, which is orchestrator.UserRole, and knows no messages of Telegram.
package users
