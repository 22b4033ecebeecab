/* semihosting.h - calls that a debugger or an emulator answers */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

/* Prints text. */
void semihosting_write(const char *text);

/* Ends the emulator with this exit status. */
_Noreturn void semihosting_exit(int status);

#endif
