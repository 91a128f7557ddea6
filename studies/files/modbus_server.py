"""Serve 100 holding registers by Modbus/TCP on port 502, as a controller (PLC) would."""

from pymodbus.datastore import ModbusSequentialDataBlock, ModbusServerContext, ModbusSlaveContext
from pymodbus.server import StartTcpServer

registers = ModbusSlaveContext(hr=ModbusSequentialDataBlock(0, list(range(100))))
StartTcpServer(context=ModbusServerContext(slaves=registers, single=True), address=("0.0.0.0", 502))
