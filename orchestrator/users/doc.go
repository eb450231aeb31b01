// Package users knows the users of ductor: those in the configuration, and those who accepted an owner's invitation. It
// creates invitations and checks their codes.
//
// It does NOT define the rights of users; orchestrator.UserRole does. It handles no Telegram messages.
package users
