/* `sigma mcp`. Internal to the command. */
#ifndef SIGMA_CLI_MCP_MCP_H
#define SIGMA_CLI_MCP_MCP_H

int mcp_run_command(int argc, char **argv);

#endif
